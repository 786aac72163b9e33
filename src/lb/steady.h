// SPDX-License-Identifier: Apache-2.0
// Holds a noisy figure still until its mean has moved: a two-sided cumulative sum (Page, Biometrika
// 41, 1954) whose slack and threshold grow with the noise that is seen. Pure.
#pragma once

#include <cstdint>

namespace ballast::lb {

class Steady {
 public:
  // The next figure, at even intervals; gives what is held from now on. Without noise a move by
  // `step` is followed at once, and one by less than a quarter of it never. With noise (the mean
  // distance of a figure from what is held) a move of that size is not followed, and one of twice
  // it after some ten figures. A move of `most` or more is followed at once whatever the noise,
  // and one by less than a quarter of it is still noise.
  double take(double figure, double step, double most = 1);
  double held() const { return held_; }
  bool is_empty() const { return !has_any_; }

 private:
  // How far the figures have been to one side of what is held, beyond the slack.
  struct Side {
    double sum = 0;
    double total = 0;  // of the figures since `sum` left 0
    uint32_t count = 0;
    bool add(double figure, double excess, double threshold);
  };

  double held_ = 0;
  double noise_ = 0;
  Side above_;
  Side below_;
  bool has_any_ = false;
};

}  // namespace ballast::lb
