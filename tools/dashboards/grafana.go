package main

// The types below are the part of Grafana's dashboard format, version 39, that the dashboards use.
type (
	dashboard struct {
		UID           string     `json:"uid"`
		Title         string     `json:"title"`
		Tags          []string   `json:"tags"`
		SchemaVersion int        `json:"schemaVersion"`
		Editable      bool       `json:"editable"`
		Refresh       string     `json:"refresh"`
		Time          timeRange  `json:"time"`
		Templating    templating `json:"templating"`
		Links         []link     `json:"links"`
		Panels        []panel    `json:"panels"`
	}
	timeRange struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	templating struct {
		List []variable `json:"list"`
	}
	variable struct {
		Name       string      `json:"name"`
		Label      string      `json:"label"`
		Type       string      `json:"type"`
		Query      string      `json:"query"`
		Datasource *datasource `json:"datasource,omitempty"`
		Refresh    int         `json:"refresh,omitempty"`
		IncludeAll bool        `json:"includeAll"`
		Multi      bool        `json:"multi"`
		AllValue   string      `json:"allValue,omitempty"`
	}
	datasource struct {
		Type string `json:"type"`
		UID  string `json:"uid"`
	}
	link struct {
		Title       string   `json:"title"`
		Type        string   `json:"type"`
		Icon        string   `json:"icon"`
		Tooltip     string   `json:"tooltip"`
		Tags        []string `json:"tags"`
		TargetBlank bool     `json:"targetBlank"`
		AsDropdown  bool     `json:"asDropdown"`
		IncludeVars bool     `json:"includeVars"`
		KeepTime    bool     `json:"keepTime"`
	}
	panel struct {
		ID          int         `json:"id"`
		Type        string      `json:"type"`
		Title       string      `json:"title"`
		GridPos     gridPos     `json:"gridPos"`
		Datasource  *datasource `json:"datasource,omitempty"`
		FieldConfig *fields     `json:"fieldConfig,omitempty"`
		Targets     []target    `json:"targets,omitempty"`
	}
	gridPos struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	}
	fields struct {
		Defaults  fieldDefaults `json:"defaults"`
		Overrides []any         `json:"overrides"`
	}
	fieldDefaults struct {
		Unit string `json:"unit"`
		Min  *int   `json:"min,omitempty"`
	}
	target struct {
		RefID        string      `json:"refId"`
		Datasource   *datasource `json:"datasource"`
		Expr         string      `json:"expr"`
		LegendFormat string      `json:"legendFormat"`
		Instant      bool        `json:"instant"`
		Range        bool        `json:"range"`
	}
)
