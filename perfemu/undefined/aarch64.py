"""A64 instructions beyond Armv8.0-A, by the bits of their encoding."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    mask: int
    value: int
    extension: str


PERMANENTLY_UNDEFINED = Row(0xFFFF_0000, 0, "")  # UDF

# Arm ARM DDI 0487, "A64 instruction set encoding"; the first row that fits decides. FEAT_ is left out of the names.
ROWS = [
    Row(0x9E00_0000, 0x8000_0000, "SME"),
    Row(0x1E00_0000, 0x0400_0000, "SVE"),
    # loads and stores
    Row(0x3FFF_FC00, 0x38BF_C000, "LRCPC"),  # LDAPR
    Row(0xFFFF_8C00, 0xF83F_8000, "LS64"),
    Row(0xFFE0_CC00, 0xF820_8000, "LSE"),  # SWP of 64 bits
    Row(0xFFE0_EC00, 0xF820_A000, "LS64"),
    Row(0xBF20_FC00, 0x3820_9000, "THE"),  # RCWCLR
    Row(0xBF20_FC00, 0x3820_A000, "THE"),  # RCWSWP
    Row(0xBF20_FC00, 0x3820_B000, "THE"),  # RCWSET
    Row(0x3F20_0C00, 0x3820_0000, "LSE"),  # LDADD ... SWP
    Row(0x3FA0_7C00, 0x08A0_7C00, "LSE"),  # CAS
    Row(0xBFA0_7C00, 0x0820_7C00, "LSE"),  # CASP
    Row(0x3FA0_8000, 0x0880_0000, "LOR"),  # LDLAR, STLLR
    Row(0xBF20_FC00, 0x1920_9000, "THE"),
    Row(0xBF20_FC00, 0x1920_A000, "THE"),
    Row(0xBF20_FC00, 0x1920_B000, "THE"),
    Row(0xFF20_0C00, 0x1920_0000, "LSE128"),
    Row(0xBF20_0800, 0x1920_0800, "THE"),  # RCWCAS, RCWCASP
    Row(0x3F20_0C00, 0x1900_0400, "MOPS"),
    Row(0x3F20_0C00, 0x1D00_0400, "MOPS"),
    Row(0x3F20_0C00, 0x1900_0000, "LRCPC2"),  # LDAPUR, STLUR
    Row(0x3F20_0C00, 0x1D00_0800, "LRCPC3"),
    Row(0x3F20_0C00, 0x1900_0800, "LRCPC3"),
    Row(0xBFBF_FC00, 0x0D01_8400, "LRCPC3"),  # LDAP1, STL1
    Row(0xFF20_0000, 0xD920_0000, "MTE"),
    Row(0xFE40_0000, 0x6800_0000, "MTE"),  # STGP
    Row(0xFF20_0400, 0xF820_0400, "PAuth"),  # LDRAA, LDRAB
    # data processing of general registers
    Row(0xFFFF_8000, 0xDAC1_0000, "PAuth"),  # PACIA ... XPACD
    Row(0xFFE0_FC00, 0x9AC0_3000, "PAuth"),  # PACGA
    Row(0xFFC0_0000, 0x9180_0000, "MTE"),  # ADDG
    Row(0xFFC0_0000, 0xD180_0000, "MTE"),  # SUBG
    Row(0xDFE0_FC00, 0x9AC0_0000, "MTE"),  # SUBP, SUBPS
    Row(0xFFE0_F800, 0x9AC0_1000, "MTE"),  # IRG, GMI
    Row(0x7FF0_0000, 0x11C0_0000, "CSSC"),  # SMAX ... UMIN, immediate
    Row(0x7FE0_F000, 0x1AC0_6000, "CSSC"),
    Row(0x7FFF_F800, 0x5AC0_1800, "CSSC"),  # CTZ, CNT
    Row(0x7FFF_FC00, 0x5AC0_2000, "CSSC"),  # ABS
    Row(0xFFE0_7C10, 0xBA00_0400, "FlagM"),  # RMIF
    Row(0xFFFF_BC1F, 0x3A00_080D, "FlagM"),  # SETF8, SETF16
    # branches and system instructions
    Row(0xFE1F_F800, 0xD61F_0800, "PAuth"),  # BRAA, RETAA ...
    Row(0xFF00_0010, 0x5400_0010, "HBC"),  # BC.cond
    Row(0xFFFF_F0FF, 0xD500_401F, "FlagM"),  # CFINV
    Row(0xFFFF_F0DF, 0xD500_405F, "FlagM2"),  # XAFLAG, AXFLAG
    Row(0xFFFF_F0FF, 0xD503_30FF, "SB"),
    Row(0xFFFF_0000, 0xD523_0000, "TME"),  # TSTART, TTEST
    Row(0xFFE0_001F, 0xD460_0000, "TME"),  # TCANCEL
    # cryptography of Armv8.2
    Row(0xFFE0_8000, 0xCE00_0000, "SHA3"),  # EOR3
    Row(0xFFE0_8000, 0xCE20_0000, "SHA3"),  # BCAX
    Row(0xFFE0_0000, 0xCE80_0000, "SHA3"),  # XAR
    Row(0xFFE0_FC00, 0xCE60_8C00, "SHA3"),  # RAX1
    Row(0xFFE0_F000, 0xCE60_8000, "SHA512"),
    Row(0xFFFF_FC00, 0xCEC0_8000, "SHA512"),
    Row(0xFFE0_FC00, 0xCE60_C800, "SM4"),
    Row(0xFFFF_FC00, 0xCEC0_8400, "SM4"),
    Row(0xFF80_0000, 0xCE00_0000, "SM3"),
    # Advanced SIMD: three registers
    Row(0xBF20_F400, 0x2E00_8400, "RDM"),  # SQRDMLAH, SQRDMLSH
    Row(0xFF20_F400, 0x7E00_8400, "RDM"),
    Row(0x9FE0_FC00, 0x0E80_9400, "DotProd"),
    Row(0xBFE0_FC00, 0x0E80_9C00, "I8MM"),
    Row(0xDFE0_F400, 0x4E80_A400, "I8MM"),
    Row(0xBFE0_FC00, 0x2E40_FC00, "BF16"),
    Row(0xBFE0_FC00, 0x2EC0_FC00, "BF16"),
    Row(0xFFE0_FC00, 0x6E40_EC00, "BF16"),
    Row(0xBF20_E400, 0x2E00_C400, "FCMA"),
    Row(0xBF20_EC00, 0x2E00_E400, "FCMA"),
    Row(0xBF60_FC00, 0x0E20_EC00, "FHM"),
    Row(0xBF60_FC00, 0x2E20_CC00, "FHM"),
    Row(0xBFA0_FC00, 0x0EA0_DC00, "FAMINMAX"),
    Row(0xBFA0_FC00, 0x2EA0_DC00, "FAMINMAX"),
    Row(0xBFE0_FC00, 0x0EC0_1C00, "FAMINMAX"),
    Row(0xBFE0_FC00, 0x2EC0_1C00, "FAMINMAX"),
    Row(0xBFE0_FC00, 0x2EC0_3C00, "FP8"),  # FSCALE
    Row(0xBFA0_FC00, 0x2EA0_FC00, "FP8"),
    Row(0xBF60_C400, 0x2E40_0400, "FP16"),
    Row(0xBF60_C400, 0x0E40_0400, "FP16"),
    Row(0xDF60_C400, 0x5E40_0400, "FP16"),
    # ... with an element
    Row(0xBF00_D400, 0x2F00_D000, "RDM"),
    Row(0xFF00_D400, 0x7F00_D000, "RDM"),
    Row(0x9FC0_F400, 0x0F80_E000, "DotProd"),
    Row(0xBF40_F400, 0x0F00_F000, "I8MM"),
    Row(0xBF40_F400, 0x0F40_F000, "BF16"),
    Row(0xBF00_9400, 0x2F00_1000, "FCMA"),
    Row(0xBFC0_B400, 0x0F80_0000, "FHM"),
    Row(0xBFC0_B400, 0x2F80_8000, "FHM"),
    Row(0x9FC0_F400, 0x0F00_9000, "FP16"),
    Row(0xBFC0_B400, 0x0F00_1000, "FP16"),
    Row(0xDFC0_F400, 0x5F00_9000, "FP16"),
    Row(0xFFC0_B400, 0x5F00_1000, "FP16"),
    # ... others
    Row(0xBFFF_FC00, 0x0EA1_6800, "BF16"),  # BFCVTN
    Row(0xFFFF_FC00, 0x1E63_4000, "BF16"),  # BFCVT
    Row(0xFFFF_FC00, 0x1E7E_0000, "JSCVT"),
    Row(0xFFBE_7C00, 0x1E28_4000, "FRINTTS"),
    Row(0x9FBF_EC00, 0x0E21_E800, "FRINTTS"),
    Row(0x9F7E_0C00, 0x0E78_0800, "FP16"),
    Row(0xDF7E_0C00, 0x5E78_0800, "FP16"),
    Row(0xBF7F_FC00, 0x0E30_C800, "FP16"),  # FMAXNMV, FMINNMV
    Row(0xBF7F_FC00, 0x0E30_F800, "FP16"),  # FMAXV, FMINV
    Row(0xFF7F_FC00, 0x5E30_C800, "FP16"),  # FMAXNMP, FMINNMP
    Row(0xFF7F_FC00, 0x5E30_F800, "FP16"),  # FMAXP, FMINP
    Row(0xFFFF_FC00, 0x5E30_D800, "FP16"),  # FADDP
    Row(0xBFF8_FC00, 0x0F00_FC00, "FP16"),  # FMOV, immediate
    Row(0x9FF0_C400, 0x0F10_C400, "FP16"),  # SCVTF, FCVTZS of fixed point
    Row(0xDFF0_C400, 0x5F10_C400, "FP16"),
    # scalar floating point
    Row(0x5FC0_0000, 0x1EC0_0000, "FP16"),
    Row(0xFFC0_0000, 0x1FC0_0000, "FP16"),
]


def extension_of(word: int) -> str:
    """Empty where no row knows it."""
    return next((row.extension for row in ROWS if word & row.mask == row.value), "")
