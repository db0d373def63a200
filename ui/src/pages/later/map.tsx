import { link } from '../../shell/url';
import { Frame } from './frame';
import { ServiceList } from './service-list';

/** `/dependencies`: the services, until there is a map. */
export default function MapPage() {
  return (
    <Frame title="Map" sentence="Services and who calls them" note={<>The map comes in a later version. Until then, a trace shows the calls of one request, and the <a href={link({ page: 'overview' })}>overview</a> shows what is unusual.</>}>
      <ServiceList />
    </Frame>
  );
}
