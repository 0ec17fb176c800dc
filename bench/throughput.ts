import { type BatchFigures, type Entrant, type Length, runBatch } from './batch';
import type { Ground } from './ground';
import { median } from './statistics';

/** Who is measured at a length, and with how many follow-ups at once. */
export interface Heat {
  readonly entrant: Entrant;
  readonly length: Length;
}

/** All batches of one contestant and length. */
export interface Series {
  readonly contestant: string;
  readonly length: Length;
  readonly batches: readonly BatchFigures[];
}

export type Column = keyof BatchFigures;

/**
 * Measures the heats round by round, those of one length after each other, so that a change of the machine's speed
 * meets all contestants.
 *
 * @param mayGoOn asked before each batch after the first round
 */
export async function measureThroughput(
  ground: Ground,
  heats: readonly Heat[],
  options: { readonly rounds: number; readonly mayGoOn: () => boolean; readonly say: (line: string) => void },
): Promise<Series[]> {
  const series = heats.map((heat) => ({ ...heat, batches: [] as BatchFigures[] }));
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const { entrant, length, batches } of series) {
      if (round > 1 && !options.mayGoOn()) continue;
      const figures = await runBatch(ground, entrant, length);
      batches.push(figures);
      const { followUpsPerSecond, busyCores } = figures;
      const rate = `${followUpsPerSecond.toFixed(2)} follow-ups/s, ${busyCores.toFixed(1)} cores busy`;
      options.say(`round ${round}: ${entrant.contestant.name}, ${length.polls} polls: ${rate}`);
    }
  }
  return series.map(({ entrant, ...rest }) => ({ contestant: entrant.contestant.name, ...rest }));
}

export function medianOf({ batches }: Series, column: Column): number {
  return median(batches.map((figures) => figures[column]));
}

/** How far the batches lie apart: largest less smallest, as a share of the median. */
export function spreadOf(series: Series, column: Column): number {
  const values = series.batches.map((figures) => figures[column]);
  return (Math.max(...values) - Math.min(...values)) / medianOf(series, column);
}

/** The median of the ratios within each round, whose batches met much the same machine. */
export function ratioOf({ batches }: Series, reference: Series, column: Column): number {
  const ratios = batches.flatMap((figures, round) => {
    const other = reference.batches[round];
    return other === undefined ? [] : [figures[column] / other[column]];
  });
  return median(ratios);
}
