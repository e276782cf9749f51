"""x86-64 instructions beyond x86-64-v2 with BMI, by how they are encoded and what the disassembler calls them."""

from __future__ import annotations

import re
from dataclasses import dataclass

LEGACY, VEX, EVEX = "legacy", "VEX", "EVEX"
_PREFIXES = bytes.fromhex("66 67 f0 f2 f3 2e 36 3e 26 64 65")


@dataclass(frozen=True, slots=True)
class Row:
    """`pattern` is of the whole of mnemonic and operands."""

    encoding: str
    pattern: str
    extension: str


# Intel SDM volume 2, the column "CPUID Feature Flag", and AMD's manual, volume 3; the first row that fits decides.
ROWS = [
    Row(EVEX, r"vpdp(bus|wss)ds? .*", "AVX512_VNNI"),
    Row(EVEX, r"vpopcnt[dq] .*", "AVX512_VPOPCNTDQ"),
    Row(EVEX, r"(vpopcnt[bw]|vpshufbitqmb) .*", "AVX512_BITALG"),
    Row(EVEX, r"(vperm([it]2)?b|vpmultishiftqb) .*", "AVX512_VBMI"),
    Row(EVEX, r"(vpsh[lr]dv?[wdq]|vpcompress[bw]|vpexpand[bw]) .*", "AVX512_VBMI2"),
    Row(EVEX, r"vpmadd52[lh]uq .*", "AVX512_IFMA"),
    Row(EVEX, r"(vcvtne.*bf16|vdpbf16ps) .*", "AVX512_BF16"),
    Row(EVEX, r"(vpconflict|vplzcnt|vpbroadcastm).*", "AVX512CD"),
    Row(EVEX, r"(vexp2|vrcp28|vrsqrt28).*", "AVX512ER"),
    Row(EVEX, r"v(gather|scatter)pf.*", "AVX512PF"),
    Row(EVEX, r"vaes.*", "VAES"),
    Row(EVEX, r"vpclmul.*", "VPCLMULQDQ"),
    Row(EVEX, r"vgf2p8.*", "GFNI"),
    Row(EVEX, r"(vdbpsadbw|vp(add|sub)(u?s)?[bw]|vpcmp(eq|gt)?u?[bw]|vpblendm[bw]) .*", "AVX512BW"),
    Row(EVEX, r"(vmovdqu(8|16)|vpm(in|ax)[su][bw]|vpmov(b2m|w2m|m2b|m2w|u?s?wb|[sz]xbw)) .*", "AVX512BW"),
    Row(EVEX, r"(vperm([it]2)?w|vps(ll|rl|ra)v?w|vps[lr]ldq|vptestn?m[bw]|vpabs[bw]|vpalignr) .*", "AVX512BW"),
    Row(EVEX, r"(vpack.*|vpunpck.(bw|wd)|vpmadd(ub|w).*|vpmul(h|l|hu|hrs)w|vpavg[bw]) .*", "AVX512BW"),
    Row(EVEX, r"(vpshuf(b|hw|lw)|vpsadbw|vpbroadcast[bw]|vpextr[bw]|vpinsr[bw]) .*", "AVX512BW"),
    Row(EVEX, r"(vfpclass|vrange|vreduce|vpmullq|vpmovm2[dq]|vpmov[dq]2m|vandn?p|vx?orp).*", "AVX512DQ"),
    Row(EVEX, r"(vcvtt?p[sd]2u?qq|vcvtu?qq2p[sd]|vp?extr.*[dq]|vpinsr[dq]) .*", "AVX512DQ"),
    Row(EVEX, r"v(insert|extract|broadcast)[fi](32x2|32x8|64x2) .*", "AVX512DQ"),
    Row(EVEX, r"v[a-z\d]+[ps]h .*", "AVX512_FP16"),
    Row(EVEX, r".*", "AVX512F"),
    Row(VEX, r"k\w*[dq] .*", "AVX512BW"),
    Row(VEX, r"k\w*b .*", "AVX512DQ"),
    Row(VEX, r"k.*", "AVX512F"),
    Row(VEX, r"vfn?m(add|sub)(add|sub)?(132|213|231).*", "FMA"),
    Row(VEX, r"vfn?m(add|sub).*", "FMA4"),
    Row(VEX, r"vcvt(ph2ps|ps2ph) .*", "F16C"),
    Row(VEX, r"vaes.* ymm.*", "VAES"),
    Row(VEX, r"vpclmul.* ymm.*", "VPCLMULQDQ"),
    Row(VEX, r"vgf2p8.*", "GFNI"),
    Row(VEX, r"(vpgather|vgather|vpbroadcast|vps[lr]lv|vpsrav|vpblendd|vpmaskmov|vperm2i128).*", "AVX2"),
    Row(VEX, r"(vperm(d|q|ps|pd)|vbroadcasti128|v(insert|extract)i128) .*", "AVX2"),
    Row(VEX, r"vbroadcasts[sd] [xy]mm\d+, xmm.*", "AVX2"),
    Row(VEX, r"v(p(?!test|ermil).*|mpsadbw|movntdqa) .*ymm.*", "AVX2"),
    Row(VEX, r"(tile|ldtilecfg|sttilecfg|tdp).*", "AMX"),
    Row(VEX, r".*", "AVX"),
    Row(LEGACY, r"sha(1|256).*", "SHA"),
    Row(LEGACY, r"ad[co]x .*", "ADX"),
    Row(LEGACY, r"gf2p8.*", "GFNI"),
    Row(LEGACY, r"rdrand .*", "RDRAND"),
    Row(LEGACY, r"rdseed .*", "RDSEED"),
    Row(LEGACY, r"(xsave|xrstor|xgetbv|xsetbv).*", "XSAVE"),
    Row(LEGACY, r"(xbegin|xend|xabort|xtest).*", "RTM"),
    Row(LEGACY, r"clflushopt .*", "CLFLUSHOPT"),
    Row(LEGACY, r"clwb .*", "CLWB"),
    Row(LEGACY, r"clzero.*", "CLZERO"),
    Row(LEGACY, r"ptwrite .*", "PTWRITE"),
    Row(LEGACY, r"rdpid .*", "RDPID"),
    Row(LEGACY, r"(tpause|umonitor|umwait).*", "WAITPKG"),
    Row(LEGACY, r"(rd|wr)pkru.*", "PKU"),
    Row(LEGACY, r"movdir.*", "MOVDIRI"),
    Row(LEGACY, r"(extrq|insertq|movnts[sd]) .*", "SSE4A"),
    Row(LEGACY, r"(monitorx|mwaitx).*", "MONITORX"),
    Row(LEGACY, r"(femms|pavgusb|pi2f[dw]|pf2i[dw]|pf.*|pmulhrw|pswapd)\b.*", "3DNow!"),
]


def encoding_of(code: bytes) -> str:
    """By the first byte that is no prefix."""
    opcode = code.lstrip(_PREFIXES)[:1]
    return {b"\xc4": VEX, b"\xc5": VEX, b"\x62": EVEX}.get(opcode, LEGACY)


def extension_of(code: bytes, text: str) -> str:
    """Empty where no row knows it. `text`: mnemonic and operands, empty if no disassembler knows them."""
    encoding = encoding_of(code)
    if not text and encoding == LEGACY:
        return ""
    return next((row.extension for row in ROWS if row.encoding == encoding and re.fullmatch(row.pattern, text)), "")
