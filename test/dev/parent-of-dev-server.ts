/** A parent for tests of what happens to its dev server: it starts one, prints its process id and waits. */
import { startDevServer } from '../../dev/dev-server';

async function main(): Promise<void> {
  const [cli = ''] = process.argv.slice(2);
  const server = await startDevServer({ cli });
  console.log(server.pid);
  await server.exited;
}

void main();
