import { heartbeat } from '@temporalio/activity';

/** A read that takes longer than this tells the server that its worker lives; its heartbeat time-out is 15 s. */
const HEARTBEAT_EVERY_MS = 5_000;

/** Heartbeats with `details` while `work` takes long: a heartbeat without them would wipe those recorded before. */
export async function beating<T>(details: unknown, work: () => Promise<T>): Promise<T> {
  const beat = setInterval(() => {
    heartbeat(details);
  }, HEARTBEAT_EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(beat);
  }
}
