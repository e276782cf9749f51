"""What uname(2) and /proc/version say of this Linux."""

SYSTEM_NAME = "Linux"
HOST_NAME = "perfemu"
RELEASE = "6.12.0-perfemu"
VERSION = "#1 SMP PREEMPT_DYNAMIC"
DOMAIN_NAME = "(none)"
