# SPDX-License-Identifier: Apache-2.0
"""What there is only on POSIX is not needed by a broker in memory."""

import subprocess
import sys

HIDDEN = """
import asyncio, importlib, os, selectors, signal, socket, subprocess, sys, tempfile, threading
import multiprocessing.connection, ctypes, logging, concurrent.futures, shutil

for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"):
    sys.modules[name] = None
for name in ("fork", "forkpty", "register_at_fork", "pread", "pwrite", "fdatasync", "fchmod",
             "sched_getaffinity", "O_CLOEXEC", "O_NONBLOCK", "O_DIRECTORY", "O_NOFOLLOW", "O_SYNC",
             "getuid", "geteuid", "killpg", "setsid", "uname", "getloadavg", "mkfifo", "statvfs",
             "posix_fallocate", "posix_fadvise", "sysconf", "WNOHANG"):
    delattr(os, name)
for name in ("SIGKILL", "SIGSTOP", "SIGCONT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCHLD",
             "pthread_sigmask", "sigwait", "setitimer", "alarm", "SIG_BLOCK", "SIG_UNBLOCK"):
    delattr(signal, name)
del socket.AF_UNIX

def refused(*_, **__):
    raise NotImplementedError

asyncio.SelectorEventLoop.add_signal_handler = refused
"""
PROGRAM = """
from kohort.testing import Broker
from kohort.errors import KohortError

for options in ({}, {"in_memory": True}, {"in_memory": True, "nodes": 2}):
    with Broker(**options) as broker:
        broker.create_topic("t")
        broker.produce("t", "x")
        assert broker.read("t")[0].text == "x"
        broker.groups["g"].commit("t", 1)
        assert broker.groups["g"].lag() == {("t", 0): 0}
        broker.clock.advance(46)
        broker.recover()
for wrong in ({"process": True}, {"data_dir": sys.argv[1]}):
    try:
        Broker(**wrong).start()
    except KohortError as error:
        assert "POSIX" in str(error), error
    else:
        raise AssertionError(wrong)
import kohort.cli.main, kohort.cli.serve, kohort.testing.cases, kohort.testing.plugin
"""


def test_a_broker_in_memory_runs_without_it(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN + PROGRAM, str(tmp_path / "data")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
