import type { Errors } from '../api/errors';
import { count, share } from '../shell/format';
import { Partial } from '../shell/states';
import { t, Text } from '../shell/text';
import { Time } from '../shell/time';

/** What was not counted, and what that means for the numbers; nothing if everything was. */
export function NotCounted({ data }: { data: Errors }) {
  const { before } = data;
  return (
    <>
      {data.share < 1 && <Partial>{t('There are too many spans to count all: {share} of them were examined. Numbers are estimates, their bars are hatched, and rare errors may be missing.', { share: share(data.share) })}</Partial>}
      {data.since && <Partial><Text of="Only the newest {n} failed spans were read, back to {time}. Earlier times are hatched: they were not counted." n={count(data.spans)} time={<Time at={data.since} precision={1} />} /></Partial>}
      {before && before.share < 1 && <Partial>{t('For the preceding period, {share} of the spans were examined.', { share: share(before.share) })}</Partial>}
    </>
  );
}
