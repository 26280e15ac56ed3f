"""All bugs by name: a simulator that finds none may be blind.

Each is a small change of the broker or of our clients, as somebody might make it by mistake, for as
long as a run lasts.
"""

from contextlib import ExitStack, contextmanager
from typing import Any

from kohort.sim.injected_bugs import (
    answers,
    client_side,
    clients,
    early_answers,
    groups,
    lifetimes,
    logs,
    memory_limits,
    migration,
    scheduling,
    topics,
    transactions,
)
from kohort.sim.injected_bugs.replace_attribute import InjectedBug

INJECTED_BUGS: dict[str, InjectedBug] = {
    "reply before sync": answers.reply_before_sync,
    "overtake": answers.overtake,
    "keep bytes": answers.keep_bytes,
    "endless stop": answers.endless_stop,
    "endless slice": scheduling.endless_slice,
    "endless round": scheduling.endless_round,
    "endless arrivals": scheduling.endless_arrivals,
    "turns in a row": scheduling.turns_in_a_row,
    "worked off": scheduling.worked_off,
    "announced room": memory_limits.announced_room,
    "endless turn": memory_limits.endless_turn,
    "unread answers": memory_limits.unread_answers,
    "lasting room": memory_limits.lasting_room,
    "lasting fetch": memory_limits.lasting_fetch,
    "repeated group": memory_limits.repeated_group,
    "skip revocation": groups.skip_revocation,
    "forget timer": groups.forget_timer,
    "session once": groups.session_once,
    "epoch before": groups.epoch_before,
    "answer leader": groups.answer_leader,
    "instance is enough": groups.instance_is_enough,
    "raising handler": groups.raising_handler,
    "expire unwritten": groups.expire_unwritten,
    "part of name": groups.part_of_name,
    "unheard setting": groups.unheard_setting,
    "older assignment": client_side.older_assignment,
    "forgotten member": migration.forgotten_member,
    "drop tombstone": logs.drop_tombstone,
    "unchecked crc": logs.unchecked_crc,
    "forget producers": logs.forget_producers,
    "last offset": logs.last_offset,
    "shard by index": topics.shard_by_index,
    "delete by name": topics.delete_by_name,
    "delete unwritten": topics.delete_unwritten,
    "unnoticed topic": topics.unnoticed_topic,
    "open once": topics.open_once,
    "producer id twice": topics.producer_id_twice,
    "marker offset": transactions.marker_offset,
    "fenced producer": transactions.fenced_producer,
    "past open": transactions.past_open,
    "deaf owner": clients.deaf_owner,
    "commit ahead": clients.commit_ahead,
    "dropped buffer": clients.dropped_buffer,
    "unpaused": clients.unpaused,
    "stay outside": clients.stay_outside,
    "aborted too": clients.aborted_too,
    "sequence anew": clients.sequence_anew,
    "silent expiry": clients.silent_expiry,
    "certainly": clients.certainly,
    "untaken offsets": clients.untaken_offsets,
    "unclosed fetcher": clients.unclosed_fetcher,
    "early end": early_answers.early_end,
    "early assignment": early_answers.early_assignment,
    "early join": early_answers.early_join,
    "early producer": early_answers.early_producer,
    "early deletion": early_answers.early_deletion,
    "unsynced catalog": early_answers.unsynced_catalog,
    "living group": lifetimes.living_group,
    "half lifetime": lifetimes.half_lifetime,
    "no expiry": lifetimes.no_expiry,
    "young records": lifetimes.young_records,
    "clean open": lifetimes.clean_open,
    "id in use": lifetimes.id_in_use,
    "leave unheard": groups.leave_unheard,
    "hasty rebalance": groups.hasty_rebalance,
    "lost offsets": migration.lost_offsets,
    "refused stands": topics.refused_stands,
    "deleted lives": topics.deleted_lives,
    "growth unwritten": topics.growth_unwritten,
    "client control": logs.client_control,
    "any count": logs.any_count,
    "starts of all": logs.starts_of_all,
}


def inject_bug(name: str | None) -> Any:
    """A bug by its name, in force within a `with` block; nothing without a name."""
    return ExitStack() if name is None else contextmanager(INJECTED_BUGS[name])()
