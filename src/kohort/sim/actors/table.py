# SPDX-License-Identifier: Apache-2.0
"""Which kinds of actors there are, and how many of each a run may have."""

from kohort.sim.actors.actor import Actor
from kohort.sim.actors.admin import Admin
from kohort.sim.actors.assigner import Assigner
from kohort.sim.actors.bystander import Bystander
from kohort.sim.actors.classic import ClassicConsumer
from kohort.sim.actors.classic_member import ClassicMember
from kohort.sim.actors.committed_reader import CommittedReader
from kohort.sim.actors.committer import Committer
from kohort.sim.actors.consumer import Consumer
from kohort.sim.actors.crowder import Crowder
from kohort.sim.actors.deaf_reader import DeafReader
from kohort.sim.actors.double import ClassicDouble, ConsumerDouble
from kohort.sim.actors.forger import Forger
from kohort.sim.actors.forgetter import Forgetter
from kohort.sim.actors.holder import Holder
from kohort.sim.actors.hostile_client import HostileClient
from kohort.sim.actors.lodger import Lodger
from kohort.sim.actors.migrating import MigratingMember
from kohort.sim.actors.observer import Observer
from kohort.sim.actors.parker import Parker
from kohort.sim.actors.principal import Principal
from kohort.sim.actors.principal_member import PrincipalMember
from kohort.sim.actors.producer import Producer
from kohort.sim.actors.raw_consumer import RawConsumer
from kohort.sim.actors.reader import Reader
from kohort.sim.actors.remover import Remover
from kohort.sim.actors.repeater import Repeater
from kohort.sim.actors.ruler import Ruler
from kohort.sim.actors.staller import LargeBystander, Staller
from kohort.sim.actors.steward import Steward
from kohort.sim.actors.tuner import Tuner
from kohort.sim.actors.worker import Worker
from kohort.sim.programs.copying import Copier
from kohort.sim.programs.reading import ReadingProgram
from kohort.sim.programs.writing import Writer

_MOST: tuple[tuple[type[Actor], int], ...] = (
    (Committer, 4),
    (Remover, 2),
    (Producer, 3),
    (Reader, 2),
    (Admin, 2),
    (RawConsumer, 6),
    (ClassicConsumer, 4),
    (HostileClient, 2),
    (Consumer, 5),
    (ClassicMember, 5),
    (Forgetter, 2),
    (ConsumerDouble, 2),
    (ClassicDouble, 2),
    (Worker, 4),
    (CommittedReader, 2),
    (Tuner, 2),
    (MigratingMember, 6),
    (Assigner, 5),
    (ReadingProgram, 4),
    (Writer, 2),
    (Copier, 2),
    (Steward, 2),
    (Holder, 2),
    (Observer, 1),
    (Lodger, 2),
    (Forger, 1),
    (Bystander, 1),
    (Crowder, 1),
    (Staller, 2),
    (LargeBystander, 1),
    (DeafReader, 1),
    (Repeater, 1),
    (Parker, 2),
    (Ruler, 1),
    (Principal, 4),
    (PrincipalMember, 6),
)

KINDS: dict[str, tuple[type[Actor], int]] = {actor.kind: (actor, most) for actor, most in _MOST}
