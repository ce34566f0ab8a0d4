# SPDX-License-Identifier: Apache-2.0
# The distribution has the files that its MANIFEST lists, and no others.
use strict;
use warnings;
use ExtUtils::Manifest qw(filecheck manicheck);
use FindBin;
use Test::More;

chdir "$FindBin::Bin/.." or die $!;
$ExtUtils::Manifest::Quiet = 1;
is_deeply([manicheck()], [], 'every file that is listed is there');
is_deeply([grep { !m{^(?:blib/|Makefile$|MYMETA|pm_to_blib|\.gitignore)} } filecheck()], [], 'every file that is there is listed');
done_testing;
