# SPDX-License-Identifier: Apache-2.0
"""DescribeUserScramCredentials, AlterUserScramCredentials: kept with the catalog (KIP-554).

They are taken on every listener, and where no listener has SCRAM, as upstream takes them.
"""

from collections.abc import Mapping
from secrets import token_bytes

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
from kohort.server.access import ALTER, CLUSTER, CLUSTER_NAME, DESCRIBE, check
from kohort.server.apis.topic_changes import change_topics
from kohort.server.catalog import Draft
from kohort.server.node import Node
from kohort.server.scram import ScramCredential, check_user, credential
from kohort.terms import Millis
from kohort.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kohort.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

CREDENTIALS_MAX = 10_000

_UserChange = ScramCredentialDeletion | ScramCredentialUpsertion

_Key = tuple[str, int]
"""A user and a mechanism."""

_Change = tuple[_Key, ScramCredential | None]
"""What a user is to have for a mechanism; None for nothing more."""

SECRET_BYTES = 32  # of chance, not of the ids: nothing else that is drawn depends on it


def describe_scram_credentials(
    node: Node, call: Call[DescribeUserScramCredentialsRequest], _now: Millis
) -> DescribeUserScramCredentialsResponse:
    """The mechanisms of users, and nothing of a password. No list, or an empty one, asks for all
    users. One that is named twice is refused, once.
    """
    check(node.cluster.may, call.client, DESCRIBE, CLUSTER, CLUSTER_NAME, with_text=False)
    by_user: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), known in node.cluster.catalog.credentials.items():
        info = CredentialInfo(mechanism=mechanism, iterations=known.iterations)
        by_user.setdefault(user, []).append(info)
    wanted: dict[str, int] = {}
    for asked in call.request.users or ():
        wanted[asked.name] = wanted.get(asked.name, 0) + 1
    return DescribeUserScramCredentialsResponse(
        results=[
            _described(user, times, by_user.get(user))
            for user, times in (wanted or dict.fromkeys(by_user, 1)).items()
        ],
    )


def _described(
    user: str, times: int, infos: list[CredentialInfo] | None
) -> DescribeUserScramCredentialsResult:
    if times > 1:
        return DescribeUserScramCredentialsResult(
            user=user,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message="Cannot describe SCRAM credentials for the same user twice in a single "
            f"request: {user}",
        )
    if infos is None:
        return DescribeUserScramCredentialsResult(
            user=user,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {user}",
        )
    return DescribeUserScramCredentialsResult(user=user, credential_infos=infos)


def alter_scram_credentials(
    node: Node, call: Call[AlterUserScramCredentialsRequest], _now: Millis
) -> None:
    """Give credentials and take them away, or refuse each user alone. A user may be named once in a
    request, whatever the mechanism.
    """
    check(node.cluster.may, call.client, ALTER, CLUSTER, CLUSTER_NAME)
    request = call.request
    changes: list[_UserChange] = [*request.deletions, *request.upsertions]

    def judge(draft: Draft) -> dict[str, _Change | ApiError]:
        judged: dict[str, _Change | ApiError] = {}
        for asked in changes:
            before = judged.get(asked.name)
            if before is None:
                judged[asked.name] = _judged(asked, draft.credentials)
            elif not isinstance(before, ApiError):
                judged[asked.name] = ApiError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
        _make(draft, judged)
        return judged

    def answer(judged: dict[str, _Change | ApiError]) -> AlterUserScramCredentialsResponse:
        return AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResult(
                    user=user, error_code=outcome.code, error_message=outcome.message
                )
                if isinstance(outcome, ApiError)
                else AlterUserScramCredentialsResult(user=user, error_message=None)
                for user, outcome in judged.items()
            ]
        )

    change_topics(node, call, judge, answer)


def _judged(asked: _UserChange, known: Mapping[_Key, ScramCredential]) -> _Change | ApiError:
    key = asked.name, asked.mechanism
    try:
        if isinstance(asked, ScramCredentialUpsertion):
            return key, credential(*key, asked.iterations, asked.salt, asked.salted_password)
        check_user(*key)
    except ApiError as error:
        return error.without_frames()
    if key not in known:
        return ApiError(
            ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
        )
    return key, None


def _make(draft: Draft, judged: dict[str, _Change | ApiError]) -> None:
    """Make the changes that have passed; those that there is no room for are refused."""
    credentials = dict(draft.credentials)
    for user, outcome in judged.items():
        if isinstance(outcome, ApiError):
            continue
        key, wanted = outcome
        if wanted is None:
            del credentials[key]
        elif key in credentials or len(credentials) < CREDENTIALS_MAX:
            credentials[key] = wanted
        else:
            judged[user] = ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"there are {len(credentials)} credentials, at most {CREDENTIALS_MAX}",
            )
    if credentials != draft.credentials:
        draft.set_credentials(credentials, lambda: token_bytes(SECRET_BYTES))
