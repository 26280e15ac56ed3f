# SPDX-License-Identifier: Apache-2.0
"""Settings of upstream that have no effect here: one warning names them, none is refused.

A `server.properties` that works with upstream must work here, and its reader must learn which lines
have no effect.
"""

_NAMES = """
alter.config.policy.class.name alter.log.dirs.replication.quota.window.num
alter.log.dirs.replication.quota.window.size.seconds auto.include.jmx.reporter
auto.leader.rebalance.enable background.threads broker.heartbeat.interval.ms
broker.id.generation.enable broker.session.timeout.ms client.quota.callback.class
config.providers
controlled.shutdown.enable controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms
controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
controller.socket.timeout.ms create.topic.policy.class.name
delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
delegation.token.max.lifetime.ms delegation.token.secret.key
delete.records.purgatory.purge.interval.requests early.start.listeners
eligible.leader.replicas.enable fetch.purgatory.purge.interval.requests
initial.broker.registration.timeout.ms inter.broker.listener.name inter.broker.protocol.version
kafka.metrics.polling.interval.secs kafka.metrics.reporters leader.imbalance.check.interval.seconds
leader.imbalance.per.broker.percentage log.cleaner.dedupe.buffer.size log.cleaner.hash.algorithm
log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second
log.cleaner.threads log.dir.failure.timeout.ms
log.flush.start.offset.checkpoint.interval.ms
log.message.downconversion.enable log.message.format.version log.message.timestamp.difference.max.ms
max.connection.creation.rate metric.reporters metrics.num.samples metrics.recording.level
metrics.sample.window.ms num.io.threads num.network.threads num.recovery.threads.per.data.dir
num.replica.alter.log.dirs.threads num.replica.fetchers offsets.commit.required.acks
password.encoder.cipher.algorithm password.encoder.iterations password.encoder.key.length
password.encoder.keyfactory.algorithm password.encoder.old.secret password.encoder.secret
principal.builder.class process.roles producer.id.expiration.check.interval.ms
producer.purgatory.purge.interval.requests queued.max.requests
quota.window.num quota.window.size.seconds request.timeout.ms reserved.broker.max.id
security.inter.broker.protocol security.providers server.max.startup.time.ms
ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.keymanager.algorithm
sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url
ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms socket.listen.backlog.size
socket.receive.buffer.bytes socket.send.buffer.bytes telemetry.max.bytes
unstable.api.versions.enable unstable.feature.versions.enable
"""

IGNORED_NAMES = frozenset(_NAMES.split())

# Whole families of settings, for features that do not exist here.
_FAMILIES = (
    "cordoned.",
    "controller.quorum.",
    "group.share.",
    "group.streams.",
    "gssapi.",  # behind the prefix of a listener
    "metadata.",
    "quota.",
    "remote.log.",
    "replica.",
    "sasl.client.",
    "sasl.kerberos.",
    "sasl.login.",
    "sasl.mechanism.",
    "sasl.oauthbearer.assertion.",
    "sasl.oauthbearer.client.",
    "sasl.oauthbearer.jwt.",
    "share.coordinator.",
    "transaction.abort.timed.out.",
    "transaction.partition.verification.",
    "transaction.remove.expired.",
    "transaction.state.log.load.",
    "transaction.state.log.min.",
    "transaction.state.log.replication.",
    "transaction.two.phase.commit.",
    "zookeeper.",
)


def is_ignored(name: str) -> bool:
    """Whether upstream has the setting, and it can have no effect here."""
    return name in IGNORED_NAMES or name.startswith(_FAMILIES)
