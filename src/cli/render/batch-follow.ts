import { type BatchOutcome, EndsUnreadableError, type ItemEnd } from '../../client';
import type { Session } from '../session';
import { serverWords } from './batch-text';
import { batchView } from './batch-view';

/** A worker that has just started, or replays a long history, is given this long before its silence is reported. */
const SILENCE_IS_REPORTED_MS = 4_000;

/**
 * Waits for the end of a batch, and shows on stderr how it goes on.
 *
 * @param json whether each item is printed on stdout as it settles
 * @param left resolves when the waiting is to end before
 */
export async function followBatch<Left extends object>(
  session: Session,
  batchId: string,
  json: boolean,
  left: Promise<Left>,
): Promise<{ readonly ended: BatchOutcome } | Left> {
  const batch = (await session.connect()).batches.getHandle(batchId);
  const view = batchView(session.output.stderr, session.env);
  const over = new AbortController();
  const follow = async (): Promise<{ readonly ended: BatchOutcome }> => {
    let answeredAt = Date.now();
    let last: readonly ItemEnd[] = [];
    try {
      for await (const { report, ends } of batch.watch({ signal: over.signal })) {
        const now = Date.now();
        if (json && ends.length > 0) {
          view.clear();
          for (const end of ends) session.output.json(end);
        }
        last = ends;
        if (report?.from === 'worker') {
          answeredAt = now;
          view.show(report.progress, ends, now);
        } else if (now - answeredAt > SILENCE_IS_REPORTED_MS) {
          const words = report === null ? 'no answer; the batch goes on, still waiting' : serverWords(report);
          view.showTrouble(words, now);
        }
      }
    } catch (error) {
      if (!(error instanceof EndsUnreadableError)) throw error;
      view.clear();
      session.output.note(error.message);
    }
    view.showLast(last, Date.now());
    return { ended: await batch.result() };
  };
  const following = follow();
  try {
    return await Promise.race([following, left]);
  } finally {
    over.abort();
    await following.catch(() => undefined);
    view.clear();
  }
}
