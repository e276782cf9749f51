"""Credentials: who a task is and what it may: user, groups, capabilities. credentials(7), capabilities(7)

Real, effective and saved ids are one, and programs have no capabilities of their own: what an execve gives follows from
the user alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

# uapi/linux/capability.h
CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID = range(5)
CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP = 5, 6, 7, 8
CAP_IPC_LOCK, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON = 14, 19, 21, 38
LAST_CAPABILITY = 40  # CAP_CHECKPOINT_RESTORE
NO_ID = 0xFFFF_FFFF  # (uid_t)-1: "leave as it is"
ALL_CAPABILITIES = (1 << LAST_CAPABILITY + 1) - 1


@dataclass(frozen=True, slots=True)
class Capabilities:
    """A task's sets, as masks."""

    effective: int = 0
    permitted: int = 0
    inheritable: int = 0
    ambient: int = 0
    bounding: int = ALL_CAPABILITIES


ROOT_S = Capabilities(ALL_CAPABILITIES, ALL_CAPABILITIES)
NONE = Capabilities()


@dataclass(frozen=True, slots=True)
class Credentials:
    """The guest is root of its machine if `--user` does not say otherwise."""

    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()
    changed_capabilities: Capabilities | None = field(default=None)  # None: what a user has at first
    keeps_capabilities: bool = False  # PR_SET_KEEPCAPS

    @property
    def capabilities(self) -> Capabilities:
        if self.changed_capabilities is not None:
            return self.changed_capabilities
        return NONE if self.uid else ROOT_S

    def has(self, capability: int) -> bool:
        return bool(self.capabilities.effective >> capability & 1)

    def is_in(self, gid: int) -> bool:
        return gid == self.gid or gid in self.groups

    def with_capabilities(self, capabilities: Capabilities) -> Credentials:
        """A capability stays ambient only while it is permitted and inheritable."""
        ambient = capabilities.ambient & capabilities.permitted & capabilities.inheritable
        return replace(self, changed_capabilities=replace(capabilities, ambient=ambient))

    def as_user(self, uid: int) -> Credentials:
        """setuid(2). cap_emulate_setxuid(), security/commoncap.c"""
        own = self.capabilities
        if self.uid == 0 and uid != 0:
            kept = own.permitted if self.keeps_capabilities else 0
            own = replace(own, effective=0, permitted=kept, ambient=own.ambient & kept)
        elif self.uid != 0 and uid == 0:
            own = replace(own, effective=own.permitted)
        return replace(self, uid=uid, changed_capabilities=own)

    def after_exec(self) -> Credentials:
        """execve(2). cap_bprm_creds_from_file(), security/commoncap.c"""
        own = self.capabilities
        gained = own.bounding | own.inheritable if self.uid == 0 else own.ambient
        ambient = 0 if self.uid == 0 else own.ambient
        gained &= ALL_CAPABILITIES
        capabilities = replace(own, effective=gained, permitted=gained, ambient=ambient)
        return replace(self, changed_capabilities=capabilities, keeps_capabilities=False)
