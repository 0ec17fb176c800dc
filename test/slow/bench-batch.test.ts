import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type BatchFigures, runBatch } from '../../bench/batch';
import { type Contestant, ours, textbookLoop } from '../../bench/contestants';
import { Ground } from '../../bench/ground';
import { temporal } from '../harness/temporal';

let ground: Ground;

beforeAll(async () => {
  ground = await Ground.open(temporal().cli);
});
afterAll(async () => {
  await ground.close();
});

/** The figures of two follow-ups of two polls each; a job that was not read exactly twice is an error. */
async function measured(contestant: Contestant): Promise<BatchFigures> {
  const workerPid = await ground.startWorker(contestant);
  return runBatch(ground, { contestant, workerPid }, { followUps: 2, polls: 2 });
}

describe('the bench', () => {
  it('counts exactly what the textbook loop costs', async () => {
    const loop = await measured(textbookLoop);
    // Start, send, and for each poll a timer and a read; each of them is followed by a workflow task.
    expect(loop).toMatchObject({ events: 33, workflowTasks: 6, actions: 6 });
  });

  it('measures the compiled worker, and the time of each process', async () => {
    const figures = await measured(ours);
    expect(figures.workflowTasks).toBe(6);
    expect(figures.followUpsPerSecond).toBeGreaterThan(0);
    expect(figures.serverCpuSeconds).toBeGreaterThan(0);
    expect(figures.workerCpuSeconds).toBeGreaterThan(0);
  });
});
