# SPDX-License-Identifier: Apache-2.0
"""Every checker that listens to facts."""

from kohort.sim.checkers.at_least_once import AtLeastOnceChecker
from kohort.sim.checkers.availability import AvailabilityChecker
from kohort.sim.checkers.checker import Checker
from kohort.sim.checkers.commits import Commits
from kohort.sim.checkers.compaction import CompactionChecker
from kohort.sim.checkers.consumption import ConsumptionChecker
from kohort.sim.checkers.convergence import Convergence
from kohort.sim.checkers.deletion import Deletion
from kohort.sim.checkers.delivery import Deliveries
from kohort.sim.checkers.departed_members import DepartedMembers
from kohort.sim.checkers.epochs import Epochs
from kohort.sim.checkers.exactly_once import ExactlyOnceChecker
from kohort.sim.checkers.fenced_producers import FencedProducers
from kohort.sim.checkers.fencing import Fencing
from kohort.sim.checkers.forged_batches import ForgedBatchChecker
from kohort.sim.checkers.instances import Instances
from kohort.sim.checkers.lifetimes import Lifetimes
from kohort.sim.checkers.migration import MigrationChecker
from kohort.sim.checkers.owners import Owners
from kohort.sim.checkers.producer_ids import ProducerIds
from kohort.sim.checkers.records import Records
from kohort.sim.checkers.refusals import RefusalChecker
from kohort.sim.checkers.rights import RightsChecker
from kohort.sim.checkers.settings import Settings
from kohort.sim.checkers.transactions import Transactions

CHECKERS: tuple[type[Checker], ...] = (
    Commits,
    Records,
    Deletion,
    AvailabilityChecker,
    ProducerIds,
    Owners,
    Epochs,
    Convergence,
    Fencing,
    Instances,
    Transactions,
    FencedProducers,
    Settings,
    MigrationChecker,
    ConsumptionChecker,
    AtLeastOnceChecker,
    Deliveries,
    ExactlyOnceChecker,
    RefusalChecker,
    CompactionChecker,
    Lifetimes,
    DepartedMembers,
    ForgedBatchChecker,
    RightsChecker,
)
