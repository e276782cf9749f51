// Elementary functions of finite values in extended format, correct to some 115 bits. Where they are not exact, their
// last bit is set.
#pragma once

#include "instructions/wide_float.hpp"

namespace perfemu {

// 2^x - 1, of 0 < |x| < 1.
Exact exponential_minus_one(const Unpacked& x);
// log2(x), of x > 0 but 1.
Exact logarithm(const Unpacked& x);
// log2(1 + x), of x > -1 but 0.
Exact logarithm_of_one_plus(const Unpacked& x);

// x less n times pi/2, with |x| < 2^63 and Intel's pi of 66 bits (SDM vol. 1, "Approximation of Pi").
struct ReducedAngle {
    Exact rest;  // |rest| <= pi/4; not zero, as no 64 bits are a multiple of that pi
    unsigned quadrant;
};
ReducedAngle reduce_angle(const Unpacked& x);
Exact sine(const Exact& angle);
Exact cosine(const Exact& angle);

// The angle of (x, y), neither of them 0.
Exact angle_of(const Unpacked& y, const Unpacked& x);
// `quarters` of pi/4.
Exact quarters_of_pi(bool sign, unsigned quarters);

}  // namespace perfemu
