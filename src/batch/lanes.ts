import type { BatchItem } from '../contract/batch';

/** The items of one job, in the order of the input: they run one after the other. */
export type Lane = readonly BatchItem[];

/**
 * The lanes of a batch, the projects taking turns: the first lane of each project, then the second of each, and so on,
 * projects and lanes in the order in which the input names them. A lane has one open follow-up at a time, so that a turn
 * a lane is a fair share of the places, however long the lanes are.
 */
export function* lanesInTurns(items: readonly BatchItem[]): Generator<Lane> {
  let waiting = lanesByProject(items).map((lanes) => lanes.values());
  while (waiting.length > 0) {
    const left: typeof waiting = [];
    for (const lanes of waiting) {
      const next = lanes.next();
      if (next.done === true) continue;
      yield next.value;
      left.push(lanes);
    }
    waiting = left;
  }
}

function lanesByProject(items: readonly BatchItem[]): Lane[][] {
  const projects = new Map<string, Map<string, BatchItem[]>>();
  for (const item of items) {
    const { projectId, jobId } = item.request;
    const jobs = projects.get(projectId) ?? new Map<string, BatchItem[]>();
    projects.set(projectId, jobs);
    const lane = jobs.get(jobId);
    if (lane === undefined) jobs.set(jobId, [item]);
    else lane.push(item);
  }
  return [...projects.values()].map((jobs) => [...jobs.values()]);
}

/** The items of some lanes in rounds: the first of each lane, then the second of each, … */
export function inRounds(lanes: readonly Lane[]): BatchItem[] {
  const rounds = Math.max(0, ...lanes.map((lane) => lane.length));
  return Array.from({ length: rounds }, (_, round) => lanes.flatMap((lane) => lane[round] ?? [])).flat();
}
