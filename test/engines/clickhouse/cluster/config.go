package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"text/template"
)

// layout is what every server knows of the cluster.
type layout struct {
	ZooKeeper int // port
	Shards    [][]*Node
}

// configure writes the configuration of the server.
func (n *Node) configure(packages string, l layout) error {
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return err
	}
	var config, users bytes.Buffer
	values := map[string]any{
		"Name": Name, "ZooKeeper": l.ZooKeeper, "Shards": l.Shards, "Node": n, "Dir": n.dir,
		"TCP": n.tcp, "HTTP": n.http, "Interserver": n.interserver, "SessionTimeout": sessionTimeoutMillis,
	}
	if err := serverConfig.Execute(&config, values); err != nil {
		return err
	}
	if err := usersConfig.Execute(&users, values); err != nil {
		return err
	}
	n.packages = packages
	if err := os.WriteFile(filepath.Join(n.dir, "config.xml"), config.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(n.dir, "users.xml"), users.Bytes(), 0o644)
}

// Port returns the port of the native protocol.
func (n *Node) Port() int { return n.tcp }

var serverConfig = template.Must(template.New("config.xml").Parse(`<yandex>
  <logger>
    <level>debug</level>
    <log>{{.Node.Log}}</log>
    <errorlog>{{.Dir}}/error.log</errorlog>
    <size>20M</size>
    <count>3</count>
  </logger>
  <listen_host>127.0.0.1</listen_host>
  <tcp_port>{{.TCP}}</tcp_port>
  <http_port>{{.HTTP}}</http_port>
  <interserver_http_port>{{.Interserver}}</interserver_http_port>
  <interserver_http_host>127.0.0.1</interserver_http_host>
  <path>{{.Dir}}/data/</path>
  <tmp_path>{{.Dir}}/tmp/</tmp_path>
  <users_config>{{.Dir}}/users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <mark_cache_size>67108864</mark_cache_size>
  <uncompressed_cache_size>0</uncompressed_cache_size>
  <max_concurrent_queries>100</max_concurrent_queries>
  <merge_tree>
    <old_parts_lifetime>2</old_parts_lifetime>
    <cleanup_delay_period>2</cleanup_delay_period>
    <cleanup_delay_period_random_add>1</cleanup_delay_period_random_add>
    <replicated_max_ratio_of_wrong_parts>1</replicated_max_ratio_of_wrong_parts>
  </merge_tree>
  <remote_servers>
    <{{.Name}}>{{range .Shards}}
      <shard>
        <internal_replication>true</internal_replication>{{range .}}
        <replica><host>127.0.0.1</host><port>{{.Port}}</port></replica>{{end}}
      </shard>{{end}}
    </{{.Name}}>
  </remote_servers>
  <zookeeper>
    <node><host>127.0.0.1</host><port>{{.ZooKeeper}}</port></node>
    <session_timeout_ms>{{.SessionTimeout}}</session_timeout_ms>
  </zookeeper>
  <macros>
    <cluster>{{.Name}}</cluster>
    <shard>{{.Node.Shard}}</shard>
    <replica>{{.Node.Name}}</replica>
  </macros>
  <distributed_ddl><path>/clickhouse/ddl</path></distributed_ddl>
</yandex>
`))

var usersConfig = template.Must(template.New("users.xml").Parse(`<yandex>
  <profiles>
    <default>
      <load_balancing>random</load_balancing>
      <max_threads>2</max_threads>
      <allow_experimental_low_cardinality_type>1</allow_experimental_low_cardinality_type>
      <connect_timeout_with_failover_ms>500</connect_timeout_with_failover_ms>
    </default>
  </profiles>
  <users>
    <default>
      <password></password>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
    </default>
  </users>
  <quotas><default></default></quotas>
</yandex>
`))
