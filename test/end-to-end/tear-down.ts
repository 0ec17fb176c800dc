import { removeSetupFolder } from './set-up';

export default removeSetupFolder;
