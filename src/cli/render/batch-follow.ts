import { type BatchOutcome, hasCode } from '../../client';
import { isFailure } from '../../core/batch';
import type { Session } from '../session';
import { batchLine, failureLine, serverWords } from './batch-text';
import { Meter, progressLine } from './progress-line';

/** A worker that has just started, or replays a long history, is given this long before its silence is reported. */
const SILENCE_IS_REPORTED_MS = 4_000;

/** Where lines can't be rewritten: how often one with nothing but new numbers is printed at most. */
const LINE_EVERY_MS = 10_000;

/**
 * Waits for the end of a batch, and shows its progress on stderr.
 *
 * @param json whether each item is printed on stdout as it settles
 * @param left resolves if the waiting ends earlier
 */
export async function followBatch<Left extends object>(
  session: Session,
  batchId: string,
  json: boolean,
  left: Promise<Left>,
): Promise<{ readonly ended: BatchOutcome } | Left> {
  const batch = (await session.connect()).batches.getHandle(batchId);
  const line = progressLine(session.output.stderr, session.env);
  const meter = new Meter();
  const over = new AbortController();
  const follow = async (): Promise<{ readonly ended: BatchOutcome }> => {
    let answeredAt = Date.now();
    let counted = { words: '', at: -Infinity };
    try {
      for await (const { report, ends } of batch.watch({ signal: over.signal })) {
        const now = Date.now();
        if (json ? ends.length > 0 : ends.some(isFailure)) line.clear();
        for (const end of ends) {
          if (json) session.output.json(end);
          else if (isFailure(end)) session.output.note(failureLine(end));
        }
        if (report?.from === 'worker') {
          answeredAt = now;
          const { state, settled, items, open } = report.progress;
          const words = `${settled} ${open}`;
          if (words !== counted.words && now - counted.at >= LINE_EVERY_MS) counted = { words, at: now };
          line.show(batchLine(report.progress, meter.show(settled, items, now)), `${state} ${counted.words}`);
        } else if (now - answeredAt > SILENCE_IS_REPORTED_MS) {
          const words =
            report === null ? 'no answer; the batch continues; still waiting' : serverWords(report);
          line.show(words, words);
        }
      }
    } catch (error) {
      if (!hasCode(error, 'RESULTS_UNREADABLE')) throw error;
      line.clear();
      session.output.note(error.message);
    }
    return { ended: await batch.result() };
  };
  const following = follow();
  try {
    return await Promise.race([following, left]);
  } finally {
    over.abort();
    await following.catch(() => undefined);
    line.clear();
  }
}
