import { type Payload, toPayload } from '../temporal/history';

/**
 * The heartbeats of one attempt, throttled like in the SDK's core: a new heartbeat is sent after 0.8 × the heartbeat timeout. The timer runs
 * on the clock of the worker's process.
 */
export class Heartbeats {
  /** The latest details. The SDK's core reports them with a failure. */
  latestDetails: Payload[] | undefined;
  private sentAt = -Infinity;
  private timer: NodeJS.Timeout | undefined;
  private readonly everyMs: number;

  constructor(
    heartbeatMs: number,
    private readonly send: (details: Payload[] | undefined) => Promise<void>,
  ) {
    this.everyMs = heartbeatMs > 0 ? Math.min(0.8 * heartbeatMs, 60_000) : 30_000;
  }

  beat(details: unknown): void {
    this.latestDetails = details === undefined ? undefined : [toPayload(details)];
    if (this.timer !== undefined) return;
    const waitMs = this.sentAt + this.everyMs - performance.now();
    if (waitMs <= 0) this.sendLast();
    else this.timer = setTimeout(() => this.sendLast(), waitMs);
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private sendLast(): void {
    this.timer = undefined;
    this.sentAt = performance.now();
    void this.send(this.latestDetails);
  }
}
