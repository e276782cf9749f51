"""bpf(2): which command is answered by what."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from emulator.linux.errors import EINVAL, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping
from perfcore.abi.bpf import Cmd
from perfcore.bpf import link_commands, map_commands, object_commands, pin_commands
from perfcore.bpf.loading import prog_load
from perfcore.bpf.request import Request
from perfcore.bpf.subsystem import Bpf, BpfKernel
from perfcore.bpf.trace_pipe import TracePipe
from perfcore.events.settings import Settings

_COMMANDS: Mapping[int, Callable[[Bpf, Request], int | Sleeping[int]]] = {
    Cmd.MAP_CREATE: map_commands.map_create,
    Cmd.MAP_LOOKUP_ELEM: map_commands.map_lookup_elem,
    Cmd.MAP_UPDATE_ELEM: map_commands.map_update_elem,
    Cmd.MAP_DELETE_ELEM: map_commands.map_delete_elem,
    Cmd.MAP_GET_NEXT_KEY: map_commands.map_get_next_key,
    Cmd.MAP_LOOKUP_AND_DELETE_ELEM: map_commands.map_lookup_and_delete_elem,
    Cmd.MAP_FREEZE: map_commands.map_freeze,
    Cmd.MAP_LOOKUP_BATCH: map_commands.map_lookup_batch,
    Cmd.MAP_LOOKUP_AND_DELETE_BATCH: map_commands.map_lookup_and_delete_batch,
    Cmd.MAP_UPDATE_BATCH: map_commands.map_update_batch,
    Cmd.MAP_DELETE_BATCH: map_commands.map_delete_batch,
    Cmd.PROG_LOAD: prog_load,
    Cmd.PROG_TEST_RUN: object_commands.prog_test_run,
    Cmd.PROG_BIND_MAP: object_commands.prog_bind_map,
    Cmd.OBJ_PIN: pin_commands.obj_pin,
    Cmd.OBJ_GET: pin_commands.obj_get,
    Cmd.OBJ_GET_INFO_BY_FD: object_commands.obj_get_info_by_fd,
    Cmd.PROG_GET_NEXT_ID: object_commands.prog_get_next_id,
    Cmd.MAP_GET_NEXT_ID: object_commands.map_get_next_id,
    Cmd.BTF_GET_NEXT_ID: object_commands.btf_get_next_id,
    Cmd.LINK_GET_NEXT_ID: object_commands.link_get_next_id,
    Cmd.PROG_GET_FD_BY_ID: object_commands.prog_get_fd_by_id,
    Cmd.MAP_GET_FD_BY_ID: object_commands.map_get_fd_by_id,
    Cmd.BTF_GET_FD_BY_ID: object_commands.btf_get_fd_by_id,
    Cmd.LINK_GET_FD_BY_ID: object_commands.link_get_fd_by_id,
    Cmd.BTF_LOAD: object_commands.btf_load,
    Cmd.RAW_TRACEPOINT_OPEN: link_commands.raw_tracepoint_open,
    Cmd.LINK_CREATE: link_commands.link_create,
    Cmd.LINK_UPDATE: link_commands.link_update,
    Cmd.ITER_CREATE: link_commands.iter_create,
    Cmd.LINK_DETACH: link_commands.link_detach,
    Cmd.TASK_FD_QUERY: link_commands.task_fd_query,
}


class BpfCalls:
    """The call, and the files, of one machine."""

    def __init__(self, kernel: BpfKernel, settings: Settings) -> None:
        self._bpf = Bpf(kernel, settings)

    def call(self, task: Task, cmd: int, address: int, size: int) -> int | Sleeping[int]:
        request = Request.read(task, address, size)
        command = _COMMANDS.get(cmd)
        if command is None:
            name = Cmd(cmd).name if cmd in Cmd.__members__.values() else str(cmd)
            raise LinuxError(EINVAL, f"command {name} is not modelled")
        return command(self._bpf, request)

    def open_trace_pipe(self, flags: int) -> TracePipe:
        return TracePipe(self._bpf.printed, flags)
