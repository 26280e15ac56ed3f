# SPDX-License-Identifier: Apache-2.0
"""SCRAM credentials of users (KIP-554). A password never leaves the client: its salted form does.

The salted form is as good as the password to anybody who sees it on the way: the salt is no
secret: over plain text it can be seen.
"""

from asyncio.threads import to_thread  # by no name that tests patch
from collections.abc import Iterable, Mapping, Sequence

from kohort.client.admin.request_rounds import settle
from kohort.client.admin.security_views import (
    ScramCredential,
    ScramDeletion,
    ScramUpsertion,
)
from kohort.client.admin.topics import controller
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.denials import explained
from kohort.client.network.environment import environment
from kohort.errors import ApiError, api_error
from kohort.security.scram import HASHES, NUMBERS, salted
from kohort.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kohort.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

SALT_BYTES = 24  # of digits that nobody can guess: 96 bits
_ALL = ""  # in place of a user, where all are asked for: no user is called so
_NAMES = {number: name for name, number in NUMBERS.items()}

Change = ScramUpsertion | ScramDeletion
Credentials = tuple[ScramCredential, ...]


async def describe_credentials(
    cluster: Cluster, users: Iterable[str] | None, *, deadline: float
) -> Outcomes[str, Credentials]:
    """See `AdminClient.describe_user_scram_credentials`."""

    async def ask(
        node: Node, users: Sequence[str], deadline: float
    ) -> dict[str, Credentials | ApiError]:
        return await _described(cluster, node, [UserName(name=user) for user in users], deadline)

    async def ask_all(
        node: Node, _users: Sequence[str], deadline: float
    ) -> dict[str, dict[str, Credentials | ApiError] | ApiError]:
        return {_ALL: await _described(cluster, node, None, deadline)}

    locate = controller(cluster)
    if users is not None:
        return Outcomes(await settle(cluster, users, locate, ask, deadline=deadline))
    found = await settle(cluster, [_ALL], locate, ask_all, deadline=deadline)
    by_user = Outcomes(found)[_ALL]
    if isinstance(refusal := by_user.get(_ALL), ApiError):
        raise refusal
    return Outcomes(dict(sorted(by_user.items())))


async def _described(
    cluster: Cluster, node: Node, users: list[UserName] | None, deadline: float
) -> dict[str, Credentials | ApiError]:
    request = DescribeUserScramCredentialsRequest(users=users)
    answer: DescribeUserScramCredentialsResponse = await cluster.ask(
        node, request, deadline=deadline
    )
    if answer.error_code:
        refusal = api_error(answer.error_code, answer.error_message)
        error = explained(refusal, cluster.principal, "", "Describe")
        return dict.fromkeys([_ALL] if users is None else [user.name for user in users], error)
    return {
        result.user: api_error(result.error_code, result.error_message)
        if result.error_code
        else tuple(
            ScramCredential(_NAMES.get(info.mechanism, "UNKNOWN"), info.iterations)
            for info in result.credential_infos
        )
        for result in answer.results
    }


async def alter_credentials(
    cluster: Cluster, changes: Mapping[str, Change], *, deadline: float
) -> Outcomes[str, None]:
    """See `AdminClient.alter_user_scram_credentials`."""
    upsertions = {
        change: await to_thread(_upsertion, change)
        for change in changes.values()
        if isinstance(change, ScramUpsertion)
    }

    async def ask(node: Node, users: Sequence[str], deadline: float) -> dict[str, ApiError | None]:
        wanted = [changes[user] for user in users]
        request = AlterUserScramCredentialsRequest(
            deletions=[
                ScramCredentialDeletion(name=change.user, mechanism=NUMBERS[change.mechanism])
                for change in wanted
                if isinstance(change, ScramDeletion)
            ],
            upsertions=[
                upsertions[change] for change in wanted if isinstance(change, ScramUpsertion)
            ],
        )
        answer: AlterUserScramCredentialsResponse = await cluster.ask(
            node, request, deadline=deadline
        )
        return {
            result.user: api_error(result.error_code, result.error_message)
            if result.error_code
            else None
            for result in answer.results
        }

    return Outcomes(
        await settle(
            cluster, changes, controller(cluster), ask, deadline=deadline, repeatable=False
        )
    )


def _upsertion(change: ScramUpsertion) -> ScramCredentialUpsertion:
    """What a broker is sent. This takes milliseconds: it belongs into a thread."""
    salt = change.salt
    if salt is None:
        salt = environment().new_nonce()[:SALT_BYTES].encode()
    name = HASHES[change.mechanism]
    return ScramCredentialUpsertion(
        name=change.user,
        mechanism=NUMBERS[change.mechanism],
        iterations=change.iterations,
        salt=salt,
        salted_password=salted(name, change.password, salt, change.iterations),
    )
