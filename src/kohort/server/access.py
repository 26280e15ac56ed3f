"""Who may do what. Nothing is forbidden yet: every caller may do everything that there is.

The authorised operations that answers show are bit fields of ACL operation codes (KIP-430).
"""

CLUSTER_OPERATIONS = 8096
TOPIC_OPERATIONS = 3576
# Read 3, Delete 6, Describe 8, DescribeConfigs 10, AlterConfigs 11
GROUP_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
NOT_ASKED = -2147483648
