// How likely it is that the growth of a series goes on, that it has ended, or that there was none.
//
// By averaging over every shape of series_fit, every place where it may bend, every time constant and every
// restlessness of the program, each weighted by how well it explains the series (its evidence: the likelihood, averaged
// over what the parameters may be). A shape with more freedom is punished by that average itself, so nothing has to be
// tuned: the odds are right if the priors are. These are: each class of shapes as likely as the others, within a class
// each shape, place and time constant; each change about as large as the range of the series.
//   rate at the end / mean rate over the series   >= kGoesOnShare   goes on
//                                                 <= kEndedShare    has ended
//                                                 in between        neither; so is a curve's that is still rising, as
//                                                 that
//                                                                   rate will not last
// Units: probabilities, which add up to 1. Errors: none. Thread-safety: pure. Series as in series_fit.
//
// Example: if (OddsOf(series).ended < 0.01) SayThatItGrows();
#ifndef CADASTRE_REPORT_SERIES_ODDS_H_
#define CADASTRE_REPORT_SERIES_ODDS_H_

#include "report/verdict.h"

namespace cadastre {

struct GrowthOdds {
  double goes_on = 0, ended = 0, between = 0, none = 0;
};

GrowthOdds OddsOf(const Series& series);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SERIES_ODDS_H_
