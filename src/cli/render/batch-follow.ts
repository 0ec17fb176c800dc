import { setTimeout as sleep } from 'node:timers/promises';
import {
  type BatchClient,
  type BatchEnds,
  type BatchOutcome,
  EndsUnreadableError,
  type ItemEnd,
} from '../../client';
import type { Session } from '../session';
import { serverWords } from './batch-text';
import { type BatchView, batchView } from './batch-view';

/** A person sees each second pass. */
const REFRESH_MS = 1_000;

/** Looking takes no more than a fifth of the time, however many pages are to be asked: it costs worker and server. */
const PAUSE_PER_LOOK = 4;

/** How long one look waits for a worker. */
const LOOK_MS = 2_500;

/** A worker that has just started, or replays a long history, is given this long before its silence is news. */
const SILENCE_IS_NEWS_MS = 4_000;

/**
 * Waits for the end of a batch, and shows on stderr how it goes on.
 *
 * @param json whether each item is told on stdout as it settles
 * @param left comes about when the waiting is to end before
 */
export async function followBatch<Left extends object>(
  session: Session,
  batchId: string,
  json: boolean,
  left: Promise<Left>,
): Promise<{ readonly ended: BatchOutcome } | Left> {
  const { batches } = await session.connect();
  const ends = await batches.ends(batchId);
  const view = batchView(session.output.stderr, session.env);
  const tell = (news: readonly ItemEnd[]): void => {
    if (!json || news.length === 0) return;
    view.clear();
    for (const end of news) session.output.json(end);
  };
  const over = new AbortController();
  // Of one that has ended, the end says all there is to say.
  const { state } = await batches.describe(batchId);
  if (state !== 'running') over.abort();
  const looking = look({ batches, batchId, ends, view, tell, over: over.signal });
  try {
    const waited = await Promise.race([batches.outcome(batchId).then((ended) => ({ ended })), left]);
    over.abort();
    if (!('ended' in waited)) return waited;
    // What it is just being told must not be asked for once more.
    await looking;
    const rest = await ends.rest();
    tell(rest);
    if (ends.unreadable.size > 0)
      session.output.note(new EndsUnreadableError(batchId, [...ends.unreadable], rest).message);
    view.showLast(rest, Date.now());
    return waited;
  } finally {
    over.abort();
    view.clear();
  }
}

interface Look {
  readonly batches: BatchClient;
  readonly batchId: string;
  readonly ends: BatchEnds;
  readonly view: BatchView;
  readonly tell: (news: readonly ItemEnd[]) => void;
  readonly over: AbortSignal;
}

async function look({ batches, batchId, ends, view, tell, over }: Look): Promise<void> {
  let answeredAt = Date.now();
  while (!over.aborted) {
    const askedAt = Date.now();
    let pauseMs = REFRESH_MS;
    try {
      const report = await batches.report(batchId, LOOK_MS);
      if (report.from === 'worker') {
        const news = await ends.since(report.progress, askedAt);
        answeredAt = Date.now();
        pauseMs = Math.max(REFRESH_MS, PAUSE_PER_LOOK * (answeredAt - askedAt));
        tell(news);
        if (isOver(over)) return;
        view.show(report.progress, news, answeredAt);
      } else if (Date.now() - answeredAt > SILENCE_IS_NEWS_MS && !isOver(over)) {
        view.showTrouble(serverWords(report), Date.now());
      }
    } catch {
      // The wait for the outcome reports what is final; this is only what is seen on the way.
      if (Date.now() - answeredAt > SILENCE_IS_NEWS_MS && !isOver(over)) {
        view.showTrouble('no answer; the batch goes on, still waiting', Date.now());
      }
    }
    await sleep(pauseMs, undefined, { signal: over }).catch(() => undefined);
  }
}

/** As a function, because it may change while something is awaited, which the compiler can't know. */
function isOver(over: AbortSignal): boolean {
  return over.aborted;
}
