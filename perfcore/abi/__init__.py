"""abi: uapi/linux/perf_event.h as data: numbers, layouts, and codecs derived from them. No behaviour."""
