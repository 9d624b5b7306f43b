/** Requests per second as a page shows them, to one digit. */
export interface ShownRates {
  readonly total: number;
  readonly local: number;
  readonly cloud: number;
  /** What ended without going anywhere: refused, or left while it waited. */
  readonly neither: number;
}

/** Rounded so that the parts add up to the total to the digit that is shown; what is known of the parts is kept. */
export function shownRates(figures: {
  readonly requestsPerSecond: number;
  readonly localPerSecond: number;
  readonly cloudPerSecond: number;
}): ShownRates {
  const tenths = (value: number) => Math.round(value * 10);
  const [local, cloud] = [tenths(figures.localPerSecond), tenths(figures.cloudPerSecond)];
  const apart = figures.requestsPerSecond - figures.localPerSecond - figures.cloudPerSecond;
  // Less than half a digit apart is what rounding did.
  const neither = Math.max(0, tenths(apart));
  return { total: (local + cloud + neither) / 10, local: local / 10, cloud: cloud / 10, neither: neither / 10 };
}
