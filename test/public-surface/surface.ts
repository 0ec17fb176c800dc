import schema from '../../docs/request.schema.json';
import { createCliHelp } from './cli-help';
import { createPublicNames } from './public-names';
import { toJson } from './stored';
import { createTypeReports } from './type-reports';

/** Returns the files of the public surface that the sources determine. The manifests of the packages need the release archives. */
export async function createSurface(): Promise<Record<string, string>> {
  return {
    'cli-help.txt': await createCliHelp(),
    'names.json': toJson(createPublicNames()),
    'request.schema.json': toJson(schema),
    ...(await createTypeReports()),
  };
}
