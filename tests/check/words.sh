#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Refuses wording that has to be read twice, in the tracked files of the tree (in all files where there is no git):
#   - a comment or docstring that begins with "Of", "What", "Who", "Whose" or "That of" and asks no question: such a comment
#     is a fragment without a main clause
#   - the word in $banned_word below, in any text but licences, test data and golden cases
#   - two types at namespace scope with one name in different folders of the library (src/X, cuda)
#   - a type named Place, Pass, Look or Part
#   - the subject of a commit after the base commit that is longer than 72 characters
#   words.sh [-C TREE] [-b BASE] [PATH...]    PATH: complain of these files and folders only, and leave out the commits
# Prints "file:line: what is wrong", and fails if there is any.
set -euo pipefail
base=f236c690017e381ee52fb8fbdbcb3b2627eb7f76 # subjects of this commit and of those before it stay as they are
tree=$(dirname "$0")/../..
while getopts C:b: option; do
  case $option in
    C) tree=$OPTARG ;;
    b) base=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
cd "$tree"

has_git() { [[ $(git rev-parse --show-toplevel 2>/dev/null) == "$(pwd -P)" ]]; }

list_files() {
  if has_git; then git ls-files; else find . -path ./build -prune -o -path ./.git -prune -o -type f -print | sed 's,^\./,,'; fi
}

check_subjects() {
  if ! has_git || ! git merge-base --is-ancestor "$base" HEAD 2>/dev/null; then
    echo "check-words: subjects of commits are left out: the history does not reach back to ${base:0:8}"
    return 0
  fi
  git log --no-merges --format='%h%x09%s' "$base..HEAD" | perl -CS -F'\t' -lane '
    next if length($F[1]) <= 72;
    print "$F[0]: the subject has ", length($F[1]), " characters, more than 72: $F[1]";
    $wrong = 1;
    END { exit($wrong ? 1 : 0) }'
}

status=0
if (($# == 0)); then check_subjects || status=1; fi
list_files | perl -w -e "$(
  cat <<'PERL'
use strict;
my @only = map { s{^\./}{}r =~ s{/+$}{}r } @ARGV;
my %same_name = (  # types that must have one name in several folders, and why
    Float16 => 'text of cuda_source_headers.cc, which NVRTC compiles in place of base/dtype.hpp',
    Bfloat16 => 'as Float16',
);
my $banned_word = qr/\bwho[e]ver\b/i;
my $fragment = qr/(?:Of|What|Who|Whose|That of)\b/;
my $banned_type = qr/\b(?:struct|class|union|enum(?:\s+(?:class|struct))?|using|type|object|trait|interface)\s+(Place|Pass|Look|Part)\b(?!::)/;
my $no_words = qr{^(?:LICENSE|tests/golden/.*\.(?:json|params|tsv)$|tests/data/|examples/data/)|(?:^|/)LICEN[CS]E[^/]*$};
my ($num_wrong, $num_files, $path, %definitions) = (0, 0);

sub selected { my $path = shift; return !@only || grep { $_ eq '.' || $path eq $_ || index($path, "$_/") == 0 } @only }

sub complain {
    my ($line, $text) = @_;
    print "$path:$line: $text\n";
    ++$num_wrong;
}

sub line_of { my ($text, $offset) = @_; return 1 + (substr($$text, 0, $offset) =~ tr/\n//) }

# Checks each paragraph of a comment that begins on the given line and still has its comment signs.
sub check_comment {
    my ($line, $comment) = @_;
    my ($begins, $first) = (1, $line);
    my @lines = split /\n/, $comment, -1;
    for my $i (0 .. $#lines) {
        (my $text = $lines[$i]) =~ s{^\s*(?:/\*+!?|//[/!]*|\*(?!\*)|\#+!?|[rRuUbB]?"""|[rRuUbB]?''')?\s*}{};
        if ($text eq '') { $begins = 1; next }
        if ($begins && $text =~ /^($fragment)/) {
            my $word = $1;
            my ($sentence) = join(' ', $text, map { s{^\s*[/*#!]*\s*}{}r } @lines[$i + 1 .. $#lines]) =~ /^(.*?[.?!:](?=\s|"""|'''|\*\/|$)|.*)/;
            complain($line + $i, "the comment begins with \"$word\"") if $sentence !~ /\?$/;
        }
        $begins = 0;
    }
}

# Comments of C and of languages like it, with strings skipped. Line comments one below the other, in one column, are one.
sub check_c_comments {
    my $text = shift;
    my ($comment, $begin_line, $end_line, $column) = ('', 0, 0, 0);
    my ($at_line, $at_offset) = (1, 0);
    my $string = $path =~ /\.rs$/ ? qr/b?r(#+)".*?"\g{-1}|"(?:[^"\\]|\\.)*"/s
               : $path =~ /\.(?:scala|java)$/ ? qr/()""".*?"""|"(?:[^"\\\n]|\\.)*"/s
               : $path =~ /\.go$/ ? qr/()`[^`]*`|"(?:[^"\\\n]|\\.)*"/s
               : qr/\bR"([^(\s]*)\(.*?\)\g{-1}"|"(?:[^"\\\n]|\\.)*"/s;
    while ($$text =~ m{$string|'(?:\\[^'\n]+|[^'\\\n])'|(//[^\n]*|/\*.*?\*/)}sg) {
        my $found = $2;
        next if !defined $found;
        my $offset = $-[2];
        $at_line += substr($$text, $at_offset, $offset - $at_offset) =~ tr/\n//;
        $at_offset = $offset;
        my $here = $offset - (rindex($$text, "\n", $offset - 1) + 1);
        $here = $offset if $offset == 0;
        if ($found =~ m{^//} && $comment ne '' && $at_line == $end_line + 1 && $here == $column) {
            $comment .= "\n$found";
        } else {
            check_comment($begin_line, $comment) if $comment ne '';
            ($comment, $begin_line, $column) = ($found, $at_line, $here);
        }
        $end_line = $at_line;
        if ($found !~ m{^//}) { check_comment($begin_line, $comment); $comment = '' }
    }
    check_comment($begin_line, $comment) if $comment ne '';
}

# Comments from a number sign to the end of the line. It cannot tell a comment from a string of the shell.
sub check_hash_comments {
    my $text = shift;
    my ($comment, $begin_line, $line, $column) = ('', 0, 0, 0);
    for (split /\n/, $$text) {
        ++$line;
        my ($before, $found) = /^(|.*?\s)(\#(?!!).*)$/ ? ($1, $2) : (undef, undef);
        if (defined $found && $comment ne '' && length($before) == $column) { $comment .= "\n$found"; next }
        check_comment($begin_line, $comment) if $comment ne '';
        ($comment, $begin_line, $column) = defined $found ? ($found, $line, length $before) : ('', 0, 0);
    }
    check_comment($begin_line, $comment) if $comment ne '';
}

sub check_docstrings {
    my $text = shift;
    while ($$text =~ /^[ \t]*([rRuUbB]?("""|''').*?\g2)/smg) { check_comment(line_of($text, $-[1]), $1) }
}

sub check_pod {
    my $text = shift;
    while ($$text =~ /^=(?!cut)[a-z]+[0-9]?\b(.*?)(?=^=)/smg) {
        my ($line, $body) = (line_of($text, $-[1]), $1);
        $body =~ s/^[^\n]*//;
        $body =~ s/^[ \t]+\S.*$//mg;  # verbatim text
        check_comment($line, $body);
    }
}

# Types that are defined at the left margin; those inside a class or function are indented.
sub note_definitions {
    my ($text, $room) = @_;
    while ($$text =~ /^(?:template\s*<[^{};]*>\s*)?(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\s*\([^)]*\)\s+|\[\[.*?\]\]\s+|[A-Z][A-Z_]+\s+)*([A-Z]\w*)\s*(?:final\s*)?(?::(?!:)[^;{]*)?\{/mg) {
        push @{$definitions{$1}{$room}}, [$path, line_of($text, $-[1])];
    }
}

while (my $file = <STDIN>) {
    chomp $file;
    $path = $file;
    next if $path =~ $no_words || !-f $path;
    my $room = $path =~ m{^src/([^/]+)/.*\.(?:hpp|cc)$} ? $1 : $path =~ m{^cuda/.*\.(?:hpp|cc|cu|cuh)$} ? 'cuda' : '';
    my $selected = selected($path);
    next if !$selected && $room eq '';
    open my $handle, '<', $path or die "$path: $!\n";
    my $text = do { local $/; <$handle> } // '';
    close $handle;
    next if index($text, "\0") >= 0;
    ++$num_files if $selected;
    note_definitions(\$text, $room) if $room ne '';
    next if !$selected;
    while ($text =~ /($banned_word)/g) { complain(line_of(\$text, $-[1]), "the word \"$1\"") }
    if ($path =~ /\.(?:c|h|cc|hpp|cpp|cu|cuh|rs|go|java|scala|js)$/) {
        check_c_comments(\$text);
        while ($text =~ /^(?!\s*(?:\/\/|\*|\/\*)).*?$banned_type/mg) {
            complain(line_of(\$text, $-[1]), "the type \"$1\": name it by what it is");
        }
    }
    check_hash_comments(\$text) if $path =~ m{\.(?:sh|bash|awk|py|pl|pm|pl|PL|t|toml|supp|in|notes)$|(?:^|/)Makefile$|^\.ci/};
    if ($path =~ /\.py$/) {
        check_docstrings(\$text);
        while ($text =~ /^\s*class\s+(Place|Pass|Look|Part)\b/mg) {
            complain(line_of(\$text, $-[1]), "the type \"$1\": name it by what it is");
        }
    }
    check_pod(\$text) if $path =~ /\.(?:pm|pod|pl|PL|t)$/;
}

for my $name (sort keys %definitions) {
    my $rooms = $definitions{$name};
    next if keys %$rooms < 2 || exists $same_name{$name};
    my @places = map { $rooms->{$_}[0] } sort keys %$rooms;
    for my $i (0 .. $#places) {
        $path = $places[$i][0];
        next if !selected($path);
        complain($places[$i][1], "the type \"$name\" is also in " . join(', ', map { "$_->[0]:$_->[1]" } @places[grep { $_ != $i } 0 .. $#places]));
    }
}
if ($num_wrong) { print "check-words: $num_wrong wrong in $num_files files\n"; exit 1 }
print "check-words: $num_files files passed\n";
PERL
)" "$@" || status=1
exit $status
