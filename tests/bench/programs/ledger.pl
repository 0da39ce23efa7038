# Accounts and their entries, made and dropped: perl allocates each scalar's text, array and hash by itself.
# perl ledger.pl ROUNDS
use strict;
use warnings;

my $rounds = shift or die "rounds?\n";
my $sum = 0;
for my $round (1 .. $rounds) {
    my %accounts;
    for my $entry (1 .. 20_000) {
        my $account = "account " . ($entry * 7919 % 3001);
        push @{ $accounts{$account} }, { text => "entry $entry of round $round, with some more text", amount => $entry % 97 };
    }
    for my $entries (values %accounts) { $sum += $_->{amount} for @$entries }
}
print "$sum\n";
