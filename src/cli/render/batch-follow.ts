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

/** Often enough for a person. */
const REFRESH_MS = 1_000;

/** Queries take at most a fifth of the time, however many pages there are: they cost worker and server. */
const PAUSE_PER_LOOK = 4;

/** How long one look waits for a worker. */
const LOOK_MS = 2_500;

/** How long no worker may answer before that is shown: one that has just started, or replays a long history, needs time. */
const SILENCE_IS_NEWS_MS = 4_000;

/**
 * Waits for the end of a batch, and shows its progress on stderr.
 *
 * @param json whether each item is printed on stdout as it settles
 * @param left resolves when the waiting is to end earlier
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
  // If it has ended, the end says everything.
  const { state } = await batches.describe(batchId);
  if (state !== 'running') over.abort();
  const looking = look({ batches, batchId, ends, view, tell, over: over.signal });
  try {
    const waited = await Promise.race([batches.outcome(batchId).then((ended) => ({ ended })), left]);
    over.abort();
    if (!('ended' in waited)) return waited;
    // A look under way must finish first, so that no item is asked for twice.
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
      // The wait for the outcome reports final errors; this is only the progress.
      if (Date.now() - answeredAt > SILENCE_IS_NEWS_MS && !isOver(over)) {
        view.showTrouble('no answer; the batch goes on, still waiting', Date.now());
      }
    }
    await sleep(pauseMs, undefined, { signal: over }).catch(() => undefined);
  }
}

/** A function, because the value may change during an await, which the compiler can't know. */
function isOver(over: AbortSignal): boolean {
  return over.aborted;
}
