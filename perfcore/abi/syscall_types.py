"""The C types of system calls' parameters, as SYSCALL_DEFINE of Linux 6.12 has them.

By the parameter's name; by call and name where that means another thing there.
"""

from __future__ import annotations

from functools import cache

DEFAULT = "unsigned long"

_OF_PARAMETERS = {
    "__kernel_old_time_t *": "tloc",
    "__s32": "wd",
    "cap_user_data_t": "dataptr",
    "cap_user_header_t": "header",
    "char *": "buf list optval shmaddr ubuf",
    "clockid_t": "clockid",
    "const cap_user_data_t": "data",
    "const char *": "filename name newname oldname path pathname u_msg_ptr u_name uname",
    "const char *const *": "argv envp",
    "const clockid_t": "which_clock",
    "const sigset_t *": "sigmask uthese",
    "const stack_t *": "uss",
    "const struct __kernel_itimerspec *": "new_setting utmr",
    "const struct __kernel_timespec *": "timeout u_abs_timeout utime uts",
    "const struct iovec *": "lvec rvec uiov vec",
    "const struct mq_attr *": "u_mqstat",
    "const struct rlimit64 *": "new_rlim",
    "const struct sigaction *": "act",
    "const struct sigevent *": "u_notification",
    "const unsigned long *": "nmask",
    "const void *": "value",
    "fd_set *": "exp inp outp",
    "gid_t": "egid gid group rgid sgid",
    "gid_t *": "egidp grouplist rgidp sgidp",
    "int": (
        "addr_len addrlen advice backlog behavior bufsiz cmd cpu_id dfd epfd error_code family fd fd_in "
        "fd_out fdin fdout flag gidsetsize how in_fd ioprio level maxevents msgflg msqid n newdfd niceval "
        "nsems oflag olddfd op option options optlen optname out_fd pidfd pkey policy protocol semflg semid "
        "semnum shmflg shmid sig timeout_msecs type ufd which who"
    ),
    "int *": "child_tidptr fildes parent_tidptr stat_addr tidptr upeer_addrlen usockaddr_len usockvec",
    "key_t": "key",
    "loff_t": "nbytes offset pos",
    "loff_t *": "off_in off_out",
    "long": "length msgtyp request",
    "mqd_t": "mqdes",
    "pid_t": "pgid pid pid1 pid2 tgid upid",
    "siginfo_t *": "uinfo",
    "sigset_t *": "nset oset unewset user_mask uset",
    "size_t": "count len len_in msg_len msgsz sigsetsize size sizemask usize",
    "size_t *": "len_ptr",
    "stack_t *": "uoss",
    "struct __kernel_itimerspec *": "old_setting otmr setting",
    "struct __kernel_old_itimerval *": "ovalue",
    "struct __kernel_old_timeval *": "tv tvp",
    "struct __kernel_timespec *": "interval rmtp rqtp tp tsp utimes",
    "struct __kernel_timex *": "txc_p utx",
    "struct clone_args *": "uargs",
    "struct epoll_event *": "event events",
    "struct file_handle *": "handle",
    "struct futex_waitv *": "waiters",
    "struct getcpu_cache *": "unused",
    "struct linux_dirent64 *": "dirent",
    "struct mmsghdr *": "mmsg",
    "struct mq_attr *": "u_attr u_omqstat",
    "struct msgbuf *": "msgp",
    "struct pollfd *": "ufds",
    "struct rlimit *": "rlim",
    "struct rlimit64 *": "old_rlim",
    "struct robust_list_head *": "head",
    "struct robust_list_head * *": "head_ptr",
    "struct rseq *": "rseq",
    "struct rusage *": "ru",
    "struct sched_attr *": "uattr",
    "struct sched_param *": "param",
    "struct sembuf *": "tsops",
    "struct sigaction *": "oact",
    "struct sigevent *": "timer_event_spec",
    "struct siginfo *": "infop",
    "struct sockaddr *": "umyaddr upeer_sockaddr uservaddr usockaddr",
    "struct stat *": "statbuf",
    "struct statx *": "buffer",
    "struct sysinfo *": "info",
    "struct timezone *": "tz",
    "struct tms *": "tbuf",
    "struct user_msghdr *": "msg",
    "struct utimbuf *": "times",
    "timer_t": "timer_id",
    "timer_t *": "created_timer_id",
    "u32": "rseq_len val val3",
    "u32 *": "uaddr uaddr2",
    "uid_t": "euid ruid suid uid user",
    "uid_t *": "euidp ruidp suidp",
    "umode_t": "mode",
    "unsigned": "nsops",
    "unsigned *": "cpup nodep",
    "unsigned int": ("dev flags mask max_fd msg_prio newfd nfds nr_futexes oldfd personality resource seconds whence"),
    "unsigned int *": "u_msg_prio",
    "unsigned long *": "user_mask_ptr",
    "void *": "buff mnt_id",
}
_OF_CALLS = {
    "char *": "mq_timedreceive.u_msg_ptr utime.filename utimes.filename",
    "const char *": "pwrite64.buf write.buf",
    "const struct __kernel_timespec *": "clock_nanosleep.rqtp clock_settime.tp",
    "int": (
        "accept4.flags access.mode clock_nanosleep.flags dup3.flags epoll_create.size epoll_create1.flags "
        "epoll_pwait.timeout epoll_wait.timeout eventfd2.flags execveat.flags faccessat.mode faccessat2.flags "
        "faccessat2.mode fallocate.mode fsetxattr.flags get_robust_list.pid inotify_init1.flags linkat.flags "
        "lsetxattr.flags mlock2.flags mlockall.flags msync.flags open.flags openat.flags pipe2.flags "
        "rseq.flags set_mempolicy.mode setxattr.flags signalfd4.flags syslog.len timer_settime.flags "
        "timerfd_create.clockid timerfd_create.flags timerfd_settime.flags umask.mask utimensat.flags"
    ),
    "int *": "get_mempolicy.policy getsockopt.optlen recvfrom.addr_len",
    "loff_t": "fadvise64_64.len fallocate.len",
    "loff_t *": "sendfile64.offset",
    "long": "ptrace.pid",
    "off_t": "ftruncate.length lseek.offset",
    "rwf_t": "preadv2.flags pwritev2.flags",
    "siginfo_t *": "pidfd_send_signal.info",
    "struct __kernel_old_itimerval *": "getitimer.value setitimer.value",
    "struct __kernel_old_timeval *": "futimesat.utimes utimes.utimes",
    "struct __kernel_timespec *": "futex_waitv.timeout recvmmsg.timeout",
    "struct linux_dirent *": "getdents.dirent",
    "struct msqid_ds *": "msgctl.buf",
    "struct new_utsname *": "newuname.name",
    "struct open_how *": "openat2.how",
    "struct shmid_ds *": "shmctl.buf",
    "struct sockaddr *": "recvfrom.addr sendto.addr",
    "struct statfs *": "fstatfs.buf statfs.buf",
    "u32": "inotify_add_watch.mask rseq.sig",
    "union bpf_attr *": "bpf.uattr",
    "unsigned": "mknod.dev statx.flags",
    "unsigned char *": "mincore.vec",
    "unsigned int": (
        "bpf.size close.fd close_range.fd dup.fildes eventfd.count eventfd2.count fchdir.fd fchmod.fd "
        "fchown.fd fcntl.cmd fcntl.fd fdatasync.fd flock.cmd flock.fd fstatfs.fd fsync.fd ftruncate.fd "
        "getdents.count getdents.fd getdents64.count getdents64.fd ioctl.cmd ioctl.fd lseek.fd newfstat.fd "
        "pread64.fd pwrite64.fd read.fd recvmmsg.vlen sched_getaffinity.len sched_getattr.usize "
        "sched_setaffinity.len seccomp.op semtimedop.nsops sendmmsg.vlen write.fd"
    ),
    "unsigned long": (
        "get_mempolicy.flags getcwd.size mbind.len mbind.mode mmap.fd mmap.flags mmap.len mremap.flags "
        "pkey_alloc.flags preadv.fd preadv2.fd process_vm_readv.flags process_vm_writev.flags ptrace.data "
        "pwritev.fd pwritev2.fd readv.fd writev.fd"
    ),
    "unsigned long *": "get_mempolicy.nmask",
    "void *": "fgetxattr.value getxattr.value lgetxattr.value pselect6.sig recvfrom.ubuf seccomp.uargs",
}


@cache
def _by_name() -> dict[str, str]:
    return {
        name: type for rows in (_OF_PARAMETERS, _OF_CALLS) for type, names in rows.items() for name in names.split()
    }


def parameter_type(call: str, parameter: str) -> str:
    """`call` is named as its tracepoints are."""
    known = _by_name()
    return known.get(f"{call}.{parameter}") or known.get(parameter, DEFAULT)
