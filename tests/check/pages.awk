# SPDX-License-Identifier: Apache-2.0
# Makes a C program from the examples in Markdown pages; it runs each as a test called PAGE:LINE.
#   awk -f pages.awk FILE...    C files are included unchanged, in order
# A block ```c is an example: the body of a function. A block ```c file goes to file scope.
FNR == 1 {
  is_page = FILENAME ~ /\.md$/
  block = ""
  page = FILENAME
  sub(/.*\//, "", page)
  sub(/\.md$/, "", page)
  printf "#line 1 \"%s\"\n", FILENAME
}
!is_page { print; next }
block == "" && /^```c( file)?$/ {
  block = $2 == "file" ? "file" : "example"
  if (block == "example") {
    name[++num] = page ":" FNR
    printf "static void example_%d(void) {\n", num
  }
  printf "#line %d \"%s\"\n", FNR + 1, FILENAME
  next
}
block != "" && /^```$/ {
  if (block == "example") print "}"
  block = ""
  next
}
block != "" { print }
END {
  print "#line 1 \"examples\"\nstatic const example_t examples[] = {"
  for (i = 1; i <= num; ++i) printf "  {\"%s\", example_%d},\n", name[i], i
  print "};\nint main(void) { return run_examples(examples, sizeof examples / sizeof *examples); }"
}
