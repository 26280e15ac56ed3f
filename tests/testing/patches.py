# SPDX-License-Identifier: Apache-2.0
"""What a test may do to the process in which a broker runs. Nothing here imports Kohort."""

import asyncio
import contextlib
import gc
import importlib.metadata
import logging
import os
import pathlib
import random
import socket
import subprocess
import sys
import threading
import time
import uuid
import warnings
from unittest import mock

import time_machine
from freezegun import freeze_time
from pyfakefs.fake_filesystem_unittest import Patcher

FAR = "2076-01-01"


def refuse(*_, **__):
    raise AssertionError("the broker has called what the test has patched")


class GuardedSocket(socket.socket):
    """What pytest-socket makes of `socket.socket`."""

    def __new__(cls, *_, **__):
        refuse()


class NoPolicy(asyncio.DefaultEventLoopPolicy):
    get_event_loop = new_event_loop = set_event_loop = refuse


@contextlib.contextmanager
def no_policy():
    before = asyncio.get_event_loop_policy()
    asyncio.set_event_loop_policy(NoPolicy())
    try:
        yield
    finally:
        asyncio.set_event_loop_policy(before)


@contextlib.contextmanager
def strict_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextlib.contextmanager
def set_for_a_while(get, put, value):
    before = get()
    put(value)
    try:
        yield
    finally:
        put(before)


@contextlib.contextmanager
def elsewhere(tmp_path):
    """In a folder that is gone, with modules of Python's names in the one before."""
    before = os.getcwd()  # noqa: PTH109
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def beside_strangers(tmp_path):
    before = os.getcwd()  # noqa: PTH109
    for name in ("json", "random", "logging", "kohort"):
        (tmp_path / f"{name}.py").write_text("raise AssertionError('not this one')\n")
    os.chdir(tmp_path)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def no_umask():
    before = os.umask(0o777)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def without_collection():
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.freeze()  # what tests/conftest.py has frozen stays so
        gc.enable()


def all_of(module, *names):
    return lambda: mock.patch.multiple(module, **dict.fromkeys(names, refuse))


PATCHES = {
    "freezegun": lambda: freeze_time(FAR),
    "freezegun in the past": lambda: freeze_time("1999-01-01"),
    "freezegun ticks": lambda: freeze_time(FAR, auto_tick_seconds=3600),
    "freezegun with asyncio": lambda: freeze_time(FAR, real_asyncio=True),
    "time-machine": lambda: time_machine.travel(FAR, tick=False),
    "time-machine ticks": lambda: time_machine.travel(FAR),
    "time": all_of(
        time,
        *("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns", "perf_counter_ns"),
        *("sleep", "localtime", "gmtime", "strftime"),
    ),
    "random": all_of(random, "random", "randint", "uniform", "choice", "shuffle", "seed"),
    "uuid": all_of(uuid, "uuid1", "uuid4", "UUID"),
    "urandom": all_of(os, "urandom", "getpid"),
    "environment": lambda: mock.patch.dict(os.environ, {"PYTHONPATH": "/nowhere"}, clear=True),
    "socket": lambda: mock.patch("socket.socket", GuardedSocket),
    "socket module": all_of(
        socket, "socket", "socketpair", "create_connection", "create_server", "getaddrinfo"
    ),
    "asyncio.sleep": lambda: mock.patch("asyncio.sleep", mock.AsyncMock()),
    "asyncio": all_of(
        asyncio,
        *("sleep", "new_event_loop", "get_event_loop", "set_event_loop", "run"),
        *("run_coroutine_threadsafe", "open_connection", "start_server", "create_task"),
        *("wait_for", "to_thread", "timeout"),
    ),
    "policy": no_policy,
    "threads": all_of(threading, "Thread", "Timer"),
    "methods of threads": lambda: mock.patch.multiple(
        threading.Thread, start=mock.DEFAULT, run=mock.DEFAULT, join=mock.DEFAULT
    ),
    "files": all_of(
        os,
        *("open", "close", "fstat", "stat", "lstat", "fsync", "fdatasync", "pread", "pwrite"),
        *("listdir", "scandir", "mkdir", "rmdir", "unlink", "replace", "rename", "ftruncate"),
    ),
    "names of files": lambda: mock.patch("os.listdir", return_value=[]),
    "texts of files": lambda: mock.patch("pathlib.Path.read_text", return_value=""),
    "paths": all_of(pathlib.Path, "exists", "mkdir", "unlink", "rmdir", "is_dir", "stat"),
    "versions": all_of(importlib.metadata, "version", "distribution"),
    "pyfakefs": Patcher,
    "processes": all_of(subprocess, "Popen", "run", "check_output"),
    "warnings": strict_warnings,
    "logging": lambda: set_for_a_while(
        lambda: logging.root.manager.disable, logging.disable, logging.CRITICAL
    ),
    "recursion": lambda: set_for_a_while(sys.getrecursionlimit, sys.setrecursionlimit, 180),
    "switches": lambda: set_for_a_while(sys.getswitchinterval, sys.setswitchinterval, 10.0),
    "timeout of sockets": lambda: set_for_a_while(
        socket.getdefaulttimeout, socket.setdefaulttimeout, 0.001
    ),
    "collection": without_collection,
    "umask": no_umask,
}
IN_A_FOLDER = {"folder": elsewhere, "strangers": beside_strangers}
