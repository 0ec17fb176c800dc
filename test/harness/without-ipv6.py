"""Runs a program as on a machine whose kernel has no IPv6: each new IPv6 socket fails with EAFNOSUPPORT.

Usage: python3 without-ipv6.py PROGRAM ARGUMENT...
"""

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
SYSCALL_SOCKET = {"x86_64": 41, "aarch64": 198}[platform.machine()]
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000 | errno.EAFNOSUPPORT
# The offsets of the system call's number and of its first argument in `struct seccomp_data`
NUMBER, FIRST_ARGUMENT = 0, 16

# Each instruction has an operation, the number of instructions to skip if the comparison is true or false, and an operand.
FILTER = [
    (LOAD, 0, 0, NUMBER),
    (JUMP_IF_EQUAL, 0, 3, SYSCALL_SOCKET),
    (LOAD, 0, 0, FIRST_ARGUMENT),
    (JUMP_IF_EQUAL, 0, 1, socket.AF_INET6),
    (RETURN, 0, 0, FAIL),
    (RETURN, 0, 0, ALLOW),
]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


code = b"".join(struct.pack("HBBI", *instruction) for instruction in FILTER)
libc = ctypes.CDLL(None, use_errno=True)
for arguments in [
    (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
    (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(Program(len(FILTER), code)), 0, 0),
]:
    if libc.prctl(*arguments) != 0:
        sys.exit("prctl failed: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
