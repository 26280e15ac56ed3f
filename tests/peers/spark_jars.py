# SPDX-License-Identifier: Apache-2.0
"""Spark's optional jars: its Kafka connector, and Delta. The wheel has neither, and no later Spark
than 4.2.0 has both, so what needs them runs on that one.

Maven brings each jar by itself, without what it depends on: the wheel has those already, in
versions that must not be there twice. A jar whose bytes are not the expected ones is refused.
"""

import functools
import hashlib
import os
import shutil
from pathlib import Path

from tests.peers import maven
from tests.peers.maven import PeerError

SPARK = "4.2.0"
RESOLVE_SECONDS = 300.0

CONNECTOR = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0": "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0": "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    "org.apache.kafka:kafka-clients:3.9.2": "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    "org.apache.commons:commons-pool2:2.13.1": "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
}
DELTA = {
    "io.delta:delta-spark_4.2_2.13:4.4.0": "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    "io.delta:delta-storage:4.4.0": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    "io.delta:delta-kernel-api:4.4.0": "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
    "io.delta:delta-kernel-defaults:4.4.0": "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
    "io.delta:delta-kernel-unitycatalog:4.4.0": "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
    "io.unitycatalog:unitycatalog-client:0.6.0": "48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19",
    "io.unitycatalog:unitycatalog-hadoop:0.6.0": "c47b63c961c87102b9e1d63809a0915ba4c86b7652f57c8d39ca3a05b441a150",
}
"""Coordinates -> SHA-256 of the jar."""

_DEPENDENCY = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
</dependency>"""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>kohort.peers</groupId><artifactId>spark-jars</artifactId><version>1</version>
<packaging>pom</packaging><dependencies>
{}
</dependencies></project>
"""


@functools.cache
def jars() -> str:
    """All of them, with commas between, as `spark.jars` wants it. PeerError where
    they cannot be had.
    """
    wanted = {**CONNECTOR, **DELTA}
    folder = maven.cache(f"spark-jars-{SPARK}")
    folder.mkdir(parents=True, exist_ok=True)
    pom = folder / "pom.xml"
    pom.write_text(_POM.format("\n".join(_DEPENDENCY.format(*one.split(":")) for one in wanted)))
    found = maven.class_path(pom, "Spark's optional jars", RESOLVE_SECONDS).split(os.pathsep)
    for path, (coordinates, expected) in zip(found, wanted.items(), strict=True):
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        if digest != expected:
            raise PeerError(f"{coordinates} has SHA-256 {digest}, expected {expected}")
    return ",".join(found)


@functools.cache
def unavailable() -> str | None:
    """Why the jars are not here, in words fit for a skip; None when they are."""
    if shutil.which("java") is None:
        return "java is not installed"
    try:
        jars()
    except PeerError as error:
        return str(error)
    return None
