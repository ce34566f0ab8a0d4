// SPDX-License-Identifier: Apache-2.0
// Which characters of foreign text appear in a message, and which are shown as bytes.
#include "base/utf8.hpp"

#include "support/unit.hpp"

using cohort::plain_line;

TEST(plain_text_and_utf8_stay_as_they_are) {
  for (const char *same : {"", "conv0_weight", "gr\u00fc\u00dfe", "\u00a0\u2027\u2030", "\U0001f600", "back\\slash"}) {
    CHECK_EQ(plain_line(same), std::string(same));
  }
}

TEST(control_characters_and_line_separators_are_spelled_out) {
  CHECK_EQ(plain_line("a\nb\rc\td"), "a\\x0ab\\x0dc\\x09d");
  CHECK_EQ(plain_line("\x1b[31m\x7f"), "\\x1b[31m\\x7f");
  CHECK_EQ(plain_line(std::string("a\0b", 3)), "a\\x00b");
  CHECK_EQ(plain_line("\u0085\u2028\u2029"), "\\xc2\\x85\\xe2\\x80\\xa8\\xe2\\x80\\xa9");
}

TEST(bytes_that_are_not_utf8_are_spelled_out) {
  CHECK_EQ(plain_line("a\xff"
                      "b"),
           "a\\xffb");
  CHECK_EQ(plain_line("\xc3"), "\\xc3");                             // cut off
  CHECK_EQ(plain_line("\xc0\xaf"), "\\xc0\\xaf");                    // too long a form
  CHECK_EQ(plain_line("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a pair
  CHECK_EQ(plain_line("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond the last character
  CHECK_EQ(plain_line("\xe2\x82x"), "\\xe2\\x82x");
}

UNIT_MAIN()
