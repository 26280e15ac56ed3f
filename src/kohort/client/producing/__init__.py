"""What a producer decides, as machines that are told the time and touch nothing.

`partitioning` says where a record goes. A `batch` collects records of a partition, its `lane` keeps
their order and their sequences, and the `queue` of all lanes says what to send. `transactions` says
what a transactional producer may do next. `verdicts` says what an error means for a batch.
"""
