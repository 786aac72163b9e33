// SPDX-License-Identifier: Apache-2.0
#include "balance/zipf.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace ballast::balance {
namespace {

// (e^t - 1) / t and log(1 + t) / t, continuous at 0, so that alpha = 1 needs no case of its own.
double expm1_over(double t) { return std::abs(t) < 1e-8 ? 1 + t / 2 : std::expm1(t) / t; }
double log1p_over(double t) { return std::abs(t) < 1e-8 ? 1 - t / 2 : std::log1p(t) / t; }

// Integral of x^-alpha from 1 to x.
double power_integral(double alpha, double x) {
  const double log_x = std::log(x);
  return log_x * expm1_over((1 - alpha) * log_x);
}

}  // namespace

Zipf::Zipf(uint64_t n, double alpha) : n_(n), alpha_(alpha) {
  BALLAST_CHECK(n >= 1 && alpha >= 0);
  low_ = integral(1.5) - 1;
  high_ = integral(static_cast<double>(n) + 0.5);
  sure_ = 2 - inverse(integral(2.5) - density(2));
}

double Zipf::integral(double x) const { return power_integral(alpha_, x); }

double Zipf::inverse(double y) const {
  // Below -1 only by rounding.
  const double t = std::max(-1.0, y * (1 - alpha_));
  return std::exp(log1p_over(t) * y);
}

double Zipf::density(double x) const { return std::exp(-alpha_ * std::log(x)); }

uint64_t Zipf::sample(Random& random) const {
  for (;;) {
    const double u = high_ + random.unit() * (low_ - high_);
    const double x = inverse(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
    if (k - x <= sure_ || u >= integral(k + 0.5) - density(k)) {
      return static_cast<uint64_t>(k) - 1;
    }
  }
}

double harmonic_range(double alpha, uint64_t first, uint64_t last) {
  BALLAST_CHECK(first >= 1);
  constexpr uint64_t kDirect = 64;
  double sum = 0;
  if (last > kDirect) {
    const uint64_t start = std::max(first, kDirect);
    if (start > last) return 0;
    const auto a = static_cast<double>(start);
    const auto b = static_cast<double>(last);
    const auto f = [&](double x) { return std::pow(x, -alpha); };
    // The integral from a to b, written so that a narrow range far out does not cancel.
    const double integral = a * f(a) * power_integral(alpha, b / a);
    sum = integral + (f(a) + f(b)) / 2;
    // B_2j / (2j)! times the difference of the (2j-1)th derivatives. f is completely monotone, so
    // the error is below the first term left out: under 10^-17 of f(64) for alpha up to 4.
    constexpr double kCoefficients[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600};
    double rising = alpha;
    for (int j = 0; j < 4; ++j) {
      const double order = 2 * j + 1;
      const auto derivative = [&](double x) { return -rising * f(x) * std::pow(x, -order); };
      sum += kCoefficients[j] * (derivative(b) - derivative(a));
      rising *= (alpha + order) * (alpha + order + 1);
    }
    // The sum so far includes k = start.
    last = start - 1;
  }
  for (uint64_t k = last; k >= first && k > 0; --k) sum += std::pow(static_cast<double>(k), -alpha);
  return sum;
}

double zipf_mass(uint64_t n, double alpha, uint64_t from, uint64_t to) {
  to = std::min(to, n);
  if (from >= to) return 0;
  return harmonic_range(alpha, from + 1, to) / harmonic_range(alpha, 1, n);
}

}  // namespace ballast::balance
