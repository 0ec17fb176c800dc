import path from 'node:path';
import { NativeConnection, Worker } from '@temporalio/worker';
import * as activities from './activities';

/** `worker.ts PEER`: a worker with the SDK's defaults that runs the peer's workflow, on the task queue of its name. */
async function main(peer: string): Promise<void> {
  const connection = await NativeConnection.connect({ address: process.env.TEMPORAL_ADDRESS ?? '' });
  const worker = await Worker.create({
    connection,
    taskQueue: peer,
    workflowsPath: path.join(__dirname, `${peer}.ts`),
    activities,
  });
  await worker.run();
  await connection.close();
}

void main(process.argv[2] ?? '').catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
