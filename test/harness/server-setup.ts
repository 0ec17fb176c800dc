import { ensureSharedServer } from './shared-server';

export default ensureSharedServer;
