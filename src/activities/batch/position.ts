import { type Lane, type Position, withEnd } from '../../core/batch/state';
import type { End } from '../../core/end';
import { askPermission } from '../send-message';

/** The server hears at least so often that the attempt lives. Its heartbeat time-out is half a minute. */
const BEAT_MS = 5_000;

/** How far the batch is, in this attempt. Heartbeats let the server keep it for the next one. */
export class KeptPosition {
  private keptAt = performance.now();
  /** Whether this attempt has any news. */
  hasChanged = false;

  constructor(public now: Position) {}

  change(values: Partial<Position>): void {
    this.now = { ...this.now, ...values };
    this.hasChanged = true;
  }

  /** Places that follow-ups take or may take. */
  get held(): number {
    return this.now.lanes.filter(([, , state]) => state !== 'free').length;
  }

  replace(lane: Lane): void {
    this.change({ lanes: this.now.lanes.map((each) => (each[1] === lane[1] ? lane : each)) });
  }

  /** An item has its end: the lane goes on with the next one. Both at once, so that nothing is counted twice. */
  pass(item: number, laneEnd: number, workflowId: string, how: End): void {
    const lanes = this.now.lanes.flatMap((lane): Lane[] => {
      if (lane[1] !== laneEnd) return [lane];
      return item + 1 < laneEnd ? [[item + 1, laneEnd, 'free']] : [];
    });
    this.change({ ...withEnd(this.now, workflowId, how), lanes });
  }

  async keep(): Promise<void> {
    if (this.hasChanged) await this.beat();
  }

  async beatInTime(): Promise<void> {
    if (performance.now() - this.keptAt > BEAT_MS) await this.beat();
  }

  /** Lets the server keep the position. @returns for how many milliseconds items may be started */
  async beat(): Promise<() => number> {
    this.keptAt = performance.now();
    return askPermission(this.now);
  }
}
