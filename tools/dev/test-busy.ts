/** `npm run test:busy` runs `npm test` while other programs keep every core busy. The arguments go to jest. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';

async function main(): Promise<void> {
  const burners = Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ['-e', 'for (;;);'], { env: {}, stdio: 'ignore' }),
  );
  const tests = spawn('npm', ['test', '--', ...process.argv.slice(2)], { stdio: 'inherit' });
  const [code] = (await once(tests, 'exit').finally(() => {
    for (const burner of burners) burner.kill('SIGKILL');
  })) as [number | null];
  process.exitCode = code ?? 1;
}

void main();
