import { link } from '../../shell/url';
import { Frame } from './frame';
import { ServiceList } from './service-list';

/** `/services`, and the original's `/monitor`: the services with links to their traces. */
export default function ServicesPage() {
  return (
    <Frame title="Services" sentence="Services" note={<>Pages with the charts and operations of each service come in a later version. Rates, errors and durations are in the <a href={link({ page: 'overview' })}>overview</a>.</>}>
      <ServiceList />
    </Frame>
  );
}
