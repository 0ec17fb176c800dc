/** `npm run test:busy`: `npm test` with every core kept busy by other programs. Arguments are jest's. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { spawnTethered } from '../lib/tether';

async function main(): Promise<void> {
  const burn = () => spawnTethered(process.execPath, ['-e', 'for (;;);'], { env: {} });
  const burners = await Promise.all(Array.from({ length: availableParallelism() }, burn));
  const tests = spawn('npm', ['test', '--', ...process.argv.slice(2)], { stdio: 'inherit' });
  const [code] = (await once(tests, 'exit').finally(() =>
    Promise.all(burners.map((burner) => burner.stop())),
  )) as [number | null];
  process.exitCode = code ?? 1;
}

void main();
