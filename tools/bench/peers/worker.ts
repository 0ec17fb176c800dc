import path from 'node:path';
import { NativeConnection, Worker } from '@temporalio/worker';
import * as activities from './activities';

/** A worker with the SDK's defaults that runs the textbook loop. */
async function main(): Promise<void> {
  const connection = await NativeConnection.connect({ address: process.env.TEMPORAL_ADDRESS ?? '' });
  const worker = await Worker.create({
    connection,
    taskQueue: 'textbook-loop',
    workflowsPath: path.join(__dirname, 'textbook-loop.ts'),
    activities,
  });
  await worker.run();
  await connection.close();
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
